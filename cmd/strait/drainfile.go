package main

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"

	"strait.io/strait/clustermesh"
	"strait.io/strait/internal/durable"
)

// drainFile is the file in a directory of YAML that drains its cluster.
func drainFile(dir string) string { return filepath.Join(dir, "strait-drain.yaml") }

// drainInDir writes or removes that file.
func drainInDir(dir, value string) error {
	if st, err := os.Stat(dir); err != nil || !st.IsDir() {
		return usageError("--manifest %s: want the directory of YAML that the cluster's daemons read (source.manifest)", dir)
	}
	if value == "" {
		if err := os.Remove(drainFile(dir)); err != nil && !errors.Is(err, fs.ErrNotExist) {
			return err
		}
		return nil
	}
	return durable.Replace(drainFile(dir), func(f *os.File) error {
		_, err := fmt.Fprintf(f, "apiVersion: v1\nkind: Namespace\nmetadata:\n  name: %s\n  annotations:\n    %s: %q\n",
			clustermesh.DefaultNamespace, clustermesh.AnnotationDrain, value)
		return err
	})
}
