package fleet

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"

	"sigs.k8s.io/yaml"

	"strait.io/strait/cli"
	"strait.io/strait/clustermesh"
	"strait.io/strait/internal/durable"
)

// drainFile is the file in a directory of YAML that drains its cluster.
func drainFile(dir string) string { return filepath.Join(dir, "strait-drain.yaml") }

// drained is the object in that file: a Namespace with the cluster's id as a label.
type drained struct {
	Metadata struct {
		Labels map[string]string `json:"labels"`
	} `json:"metadata"`
}

const labelCluster = "strait.io/cluster"

// drainInDir writes or removes that file of a cluster.
func drainInDir(dir, id, value string) error {
	if st, err := os.Stat(dir); err != nil || !st.IsDir() {
		return cli.UsageError("--manifest %s: want the directory of YAML that the cluster's daemons read (source.manifest)", dir)
	}
	if value == "" {
		if other := drainedIn(dir); other != "" && other != id {
			return cli.UsageError("%s drains cluster %q, not %q", drainFile(dir), other, id)
		}
		if err := os.Remove(drainFile(dir)); err != nil && !errors.Is(err, fs.ErrNotExist) {
			return err
		}
		return nil
	}
	return durable.Replace(drainFile(dir), func(f *os.File) error {
		_, err := fmt.Fprintf(f, "apiVersion: v1\nkind: Namespace\nmetadata:\n  name: %s\n  labels:\n    %s: %q\n  annotations:\n    %s: %q\n",
			clustermesh.DefaultNamespace, labelCluster, id, clustermesh.AnnotationDrain, value)
		return err
	})
}

// drainedIn returns the id of the cluster that the file drains; "" if there is no file, or it does not
// say.
func drainedIn(dir string) string {
	text, err := os.ReadFile(drainFile(dir))
	if err != nil {
		return ""
	}
	var d drained
	if err := yaml.Unmarshal(text, &d); err != nil {
		return "" // another user's file: removing it is what was asked for
	}
	return d.Metadata.Labels[labelCluster]
}
