package manifest

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"syscall"

	"strait.io/strait/clustermesh"
	"strait.io/strait/clustermesh/object"
	"strait.io/strait/clustermesh/policy"
	"strait.io/strait/internal/problem"
)

// maxFile bounds the size of a file: 100,000 endpoints take about 20 MB.
const maxFile = 64 << 20

// Read reads the directory once, for a check or a test. A directory that cannot be read is a
// Problem. Own is the cluster's id, and policies are those of the daemon's configuration.
func Read(dir string, own clustermesh.ClusterName, policies ...policy.Policy) clustermesh.Local {
	now, err := readDir(dir)
	if err != nil {
		return clustermesh.Local{Problems: []clustermesh.Problem{unreadable(dir, err, false)}}
	}
	s := store{}
	s.update(now)
	return s.local(object.Config{Cluster: own, Policies: policies})
}

// readDir reads the manifests directly in dir, by path. If a file cannot be read, its content holds
// the error; the returned error is about the directory. Symlinks are followed, so a mounted
// ConfigMap works.
func readDir(dir string) (map[string]content, error) {
	entries, err := os.ReadDir(dir)
	if err != nil {
		return nil, err
	}
	out := map[string]content{}
	for _, e := range entries {
		if !isManifest(e.Name()) {
			continue
		}
		path := filepath.Join(dir, e.Name())
		data, err := readFile(path)
		if errors.Is(err, fs.ErrNotExist) && e.Type()&fs.ModeSymlink == 0 {
			continue // deleted since the listing
		}
		out[path] = content{data, err}
	}
	return out, nil
}

func readFile(path string) ([]byte, error) {
	// O_NONBLOCK: opening a FIFO without a writer would wait for one.
	f, err := os.OpenFile(path, os.O_RDONLY|syscall.O_NONBLOCK, 0)
	if err != nil {
		return nil, cause(err)
	}
	defer f.Close()
	info, err := f.Stat()
	switch {
	case err != nil:
		return nil, cause(err)
	case !info.Mode().IsRegular():
		return nil, errors.New("not a regular file")
	}
	data, err := io.ReadAll(io.LimitReader(f, maxFile+1))
	if err == nil && len(data) > maxFile {
		err = fmt.Errorf("larger than %d MiB", maxFile>>20)
	}
	return data, cause(err)
}

// cause drops the operation and path from an error, because a Problem already names the file.
func cause(err error) error {
	var p *fs.PathError
	if errors.As(err, &p) {
		return p.Err
	}
	return err
}

// isManifest accepts *.yaml, *.yml and *.json, but not the files that editors leave beside them.
func isManifest(name string) bool {
	if strings.HasPrefix(name, ".") || strings.HasPrefix(name, "#") || strings.HasPrefix(name, "~") {
		return false
	}
	switch filepath.Ext(name) {
	case ".yaml", ".yml", ".json":
		return true
	}
	return false
}

// unreadable returns the Problem of a directory that cannot be read; held says that objects of an
// earlier reading stay in force.
func unreadable(dir string, err error, held bool) clustermesh.Problem {
	p := clustermesh.Problem{
		Code:    problem.DirectoryUnreadable,
		Object:  "manifest directory",
		File:    dir,
		Message: fmt.Sprintf("%v: what this cluster has is unknown", cause(err)),
		Try:     "create the directory, or correct its path in the configuration",
	}
	if held {
		p.Message = fmt.Sprintf("%v: the objects last read stay in force", cause(err))
	}
	return p
}
