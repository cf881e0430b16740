package main

import (
	"context"
	"os"
	"path/filepath"
	"time"

	"strait.io/strait/test/bench/scale"
	"strait.io/strait/test/kubelab"
	"strait.io/strait/test/kubelab/programs"
)

// measureKube measures the daemon against an API server with as many services and endpoints as the
// maps are measured with. It builds Kubernetes' programs if they are missing.
func measureKube(ctx context.Context, o options) (map[string]float64, error) {
	source, err := programs.Source(ctx)
	if err != nil {
		return nil, err
	}
	dir, err := programs.Kubernetes.Build(ctx, source, os.Stderr)
	if err != nil {
		return nil, err
	}
	all := o.sizes()
	return scale.Measure(ctx, scale.Options{
		Services: all.frontends, Endpoints: all.backends, Changes: 20, Turns: 200, Mirrors: 5000, Peers: 1000,
		// WireGuard retries handshakes for 90 s with peers that do not answer, like these, and Go's
		// runtime returns memory slowly.
		Rest: 100 * time.Second,
		Lab:  kubelab.Options{Dir: filepath.Join(source, ".lab-bench"), Programs: dir, Source: source},
	})
}
