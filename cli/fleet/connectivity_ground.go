package fleet

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"net/netip"
	"strings"
	"time"

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
	// Measure has a pod measure.
	Measure(ctx context.Context, pod string, m connectivity.Measure) (connectivity.Measured, error)
	ExportTrouble(ctx context.Context, name string) (string, error)
	Policies(context.Context) ([]string, error)
	// Zone reports whether CoreDNS has the clusterset's zone, if that is known.
	Zone(context.Context) (has, known bool)
	// Node asks the daemon of a node, also about Services, by their clusters.
	Node(ctx context.Context, node string, services map[string]string) connectivity.NodeFacts
}

// realGround is a ground at an API server.
type realGround struct{ cluster.Trial }

func (g realGround) Call(ctx context.Context, pod string, calls []connectivity.Call) (out []connectivity.Outcome, err error) {
	return out, g.probe(ctx, pod, "run", calls, &out)
}

func (g realGround) Measure(ctx context.Context, pod string, m connectivity.Measure) (out connectivity.Measured, err error) {
	return out, g.probe(ctx, pod, "measure", m, &out)
}

// probeTime bounds what one pod is asked for at a time: the calls of a group, or the measuring of a pair.
const probeTime = 2 * time.Minute

// probe asks a pod in JSON, and reads its answer.
func (g realGround) probe(ctx context.Context, pod, what string, question, answer any) error {
	text, err := json.Marshal(question)
	if err != nil {
		return err
	}
	out, err := g.Run(ctx, pod, connectivity.Container, probeTime, bytes.NewReader(append(text, '\n')), "/strait", "probe", what)
	if err != nil {
		return err
	}
	if out.Code != 0 {
		first, _, _ := strings.Cut(strings.TrimSpace(string(out.Stderr)), "\n")
		if strings.Contains(first, "unknown command") {
			first += "; the image that strait runs is older than this program: strait upgrade --context " + g.Context
		}
		return fmt.Errorf("context %s: pod %s/%s: strait probe ended with exit code %d: %s", g.Context, g.Name, pod, out.Code, first)
	}
	if err := json.NewDecoder(bytes.NewReader(out.Stdout)).Decode(answer); err != nil {
		return fmt.Errorf("context %s: pod %s/%s: read the answer of strait probe: %w", g.Context, g.Name, pod, err)
	}
	return nil
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
