package daemon

import (
	"fmt"
	"io"

	"strait.io/strait/clustermesh"
	"strait.io/strait/clustermesh/manifest"
)

// Check reports on the manifests of a valid config, which was read from file. It is an error if any of
// them would be a Problem.
func Check(w io.Writer, file string, c Config) error {
	local := manifest.Read(c.Source.Manifest)
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
		return fmt.Errorf("%s is valid, but %d problems are in %s", file, failed, c.Source.Manifest)
	}
	fmt.Fprintf(w, "%s is valid: cluster %s, node %s; %d nodes, %d exports, %d endpoints in %s\n", file,
		c.Cluster, c.Node, len(local.Nodes), len(local.Exports), len(local.Endpoints), c.Source.Manifest)
	return nil
}
