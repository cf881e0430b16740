package fleet

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"net/netip"

	"strait.io/strait/cli"
	"strait.io/strait/cli/connectivity"
	"strait.io/strait/daemon/api"
	"strait.io/strait/install/cluster"
	"strait.io/strait/install/corefile"
)

// ground is a cluster in which the test makes its pods.
type ground interface {
	ID(context.Context) (string, error)
	Image(context.Context) (image string, pullSecrets []string, err error)
	DaemonNodes(context.Context) ([]string, error)
	ServedExport(context.Context) (string, error)
	// Clear removes the namespace, and reports whether there was one.
	Clear(context.Context) (bool, error)
	Make(ctx context.Context, docs [][]byte) error
	WaitPods(ctx context.Context, role string, count int, report func(string)) ([]cluster.TrialPod, error)
	Import(ctx context.Context, name string) (ips []netip.Addr, found bool, err error)
	// Call has a pod make calls.
	Call(ctx context.Context, pod string, calls []connectivity.Call) ([]connectivity.Outcome, error)
	ExportTrouble(ctx context.Context, name string) (string, error)
	Policies(context.Context) ([]string, error)
	// Zone reports whether CoreDNS has the clusterset's zone, if that is known.
	Zone(context.Context) (has, known bool)
	// Node asks the daemon of a node, also about Services, by their clusters.
	Node(ctx context.Context, node string, services map[string]string) connectivity.NodeFacts
}

// realGround is a ground at an API server.
type realGround struct{ cluster.Trial }

func (g realGround) Call(ctx context.Context, pod string, calls []connectivity.Call) ([]connectivity.Outcome, error) {
	text, err := json.Marshal(calls)
	if err != nil {
		return nil, err
	}
	out, err := g.Run(ctx, pod, connectivity.Container, callTime, bytes.NewReader(append(text, '\n')), "/strait", "probe", "run")
	if err != nil {
		return nil, err
	}
	outcomes, err := decodeOutcomes(out.Stdout, out.Stderr, out.Code)
	if err != nil {
		return nil, fmt.Errorf("context %s: pod %s: %w", g.Context, pod, err)
	}
	return outcomes, nil
}

func (g realGround) Zone(ctx context.Context) (has, known bool) {
	dns, err := g.ReadDNS(ctx)
	if err != nil {
		return false, false
	}
	text, err := corefile.Add(dns.Corefile, clustersetZone)
	return text == dns.Corefile, err == nil
}

func (g realGround) Node(ctx context.Context, node string, services map[string]string) (out connectivity.NodeFacts) {
	way, err := g.Daemons(ctx)
	var status *api.Status
	if err == nil {
		way = way.At(node)
		status, err = way.Status(ctx)
	}
	if err != nil {
		out.Error, _ = cli.Explained(err)
		return out
	}
	out.Problems, out.Clusters = status.Problems, status.Clusters
	if list, err := way.Nodes(ctx); err == nil {
		out.Nodes = list.Items
	}
	out.Services = map[string]api.Service{}
	for cluster, service := range services {
		if e, err := way.Explain(ctx, service, ""); err == nil {
			out.Services[cluster] = e.Service
		}
	}
	return out
}
