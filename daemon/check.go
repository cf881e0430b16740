package daemon

import (
	"errors"
	"fmt"
	"io"
	"io/fs"

	"strait.io/strait/clustermesh"
	"strait.io/strait/clustermesh/gossip"
	"strait.io/strait/clustermesh/manifest"
)

// loadGossipKey reads the key and says how to make one.
func loadGossipKey(c Config) ([]byte, error) {
	key, err := gossip.LoadKey(c.Gossip.KeyFile)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, fmt.Errorf("gossip.keyFile: %w; make one for the whole clusterset: head -c 32 /dev/urandom | base64 | install -m 0600 /dev/stdin %s", err, c.Gossip.KeyFile)
	}
	if err != nil {
		return nil, fmt.Errorf("gossip.keyFile: %w", err)
	}
	return key, nil
}

// Check reports on the files that a valid config names, which was itself read from file. It is an error if any of
// them would be a Problem.
func Check(w io.Writer, file string, c Config) error {
	local := manifest.Read(c.Source.Manifest)
	if _, err := loadGossipKey(c); err != nil {
		local.Problems = append(local.Problems, clustermesh.Problem{Message: err.Error()})
	}
	failed := 0
	for _, p := range clustermesh.SortProblems(local.Problems) {
		word := "warning"
		if !p.Warning {
			word = "error"
			failed++
		}
		fmt.Fprintf(w, "%-8s %s\n", word, p)
	}
	if failed > 0 {
		return fmt.Errorf("%s is well-formed, but what it names has problems: %d", file, failed)
	}
	fmt.Fprintf(w, "%s is valid: cluster %s, node %s; %d nodes, %d exports, %d endpoints in %s\n", file,
		c.Cluster, c.Node, len(local.Nodes), len(local.Exports), len(local.Endpoints), c.Source.Manifest)
	return nil
}
