package cni

import (
	"encoding/json"
	"fmt"
	"math"
	"testing"

	"strait.io/strait/daemon/api"
	"strait.io/strait/internal/testutil"
	"strait.io/strait/test/kubelab"
)

// changes say what a CNI's configuration can become while its cluster is up.
var changes = map[string]string{
	"flannel-vxlan": "flannel-host-gw", "flannel-host-gw": "flannel-vxlan",
	"cilium": "cilium-no-proxy", "cilium-no-proxy": "cilium",
	"cilium-bpf-masquerade": "cilium-native", "cilium-native": "cilium-bpf-masquerade",
	untracked: "cilium-native",
}

// restarts kills the CNI's programs on all nodes.
func (w world) restarts(t *testing.T) {
	for _, c := range w.Topology.Clusters {
		for _, n := range c.Nodes {
			must(t, w.RestartCNI(t.Context(), n.Name))
		}
	}
	w.calls(t)
}

// reboots lets a node of each cluster die and come back.
func (w world) reboots(t *testing.T) {
	for _, node := range []string{"c1n1", "c2n2"} {
		must(t, w.NodeDown(t.Context(), node))
		must(t, w.NodeUp(t.Context(), node))
	}
	w.calls(t)
}

// straitFirst lets the other node of each cluster die and come back without its CNI, which starts
// when strait runs there.
func (w world) straitFirst(t *testing.T) {
	t.Run("Up", func(t *testing.T) {
		for cluster, node := range map[string]string{"c1": "c1n2", "c2": "c2n1"} {
			t.Run(node, func(t *testing.T) {
				t.Parallel()
				w.upBeforeCNI(t, cluster, node)
			})
		}
	})
	if t.Failed() {
		return // so that the state that failed can be printed
	}
	w.calls(t)
	w.explained(t)
}

// upBeforeCNI reboots a node, and starts its CNI when strait's daemon serves there. Without
// kube-proxy, the daemon cannot reach its API server before the CNI runs: then it only has to live.
func (w world) upBeforeCNI(t *testing.T, cluster, node string) {
	must(t, w.NodeDown(t.Context(), node))
	must(t, w.NodeUpBeforeCNI(t.Context(), node))
	probe := "readyz"
	if w.CNIs[cluster].ReplacesProxy() {
		probe = "healthz"
	}
	testutil.Eventually(t, within, func() error {
		_, err := w.OnNode(t.Context(), node, "curl", "-sS", "--fail", "http://127.0.0.1:9964/"+probe)
		return err
	})
	must(t, w.StartCNI(t.Context(), node))
}

// reconfigure changes the CNI of each cluster that has another configuration. The pods stay.
func (w world) reconfigure(t *testing.T) {
	for _, c := range w.Topology.Clusters {
		if to, ok := changes[w.CNIs[c.Name].Name]; ok {
			must(t, w.ChangeCNI(t.Context(), c.Name, to))
		}
	}
	w.calls(t)
	w.explained(t)
}

// explained demands that strait explains on each node what the calls find: that strait is the first
// to choose, and the shares of pods. Those of new pods grow for a while.
func (w world) explained(t *testing.T) {
	t.Helper()
	for i, c := range w.Topology.Clusters {
		other := w.Topology.Clusters[1-i].Name
		for _, n := range c.Nodes {
			testutil.Eventually(t, within, func() error {
				text, err := w.inStrait(t, n, "services", "-o", "json")
				if err != nil {
					return err
				}
				var services api.ServiceList
				if err := json.Unmarshal([]byte(text), &services); err != nil {
					return err
				}
				return asCalled(services.Items, n, other)
			})
		}
	}
}

// asCalled compares the Services that are called with what callsFrom wants on a node.
func asCalled(services []api.Service, n kubelab.Node, other string) error {
	share := map[string]func(api.Endpoint) float64{
		"default/far-" + other:    func(api.Endpoint) float64 { return 0.5 },
		"default/global-" + other: func(api.Endpoint) float64 { return 0.5 },
		"default/global":          func(api.Endpoint) float64 { return 0.25 },
		"default/both": func(p api.Endpoint) float64 {
			if p.Node == n.Name {
				return 1
			}
			return 0
		},
	}
	for _, s := range services {
		want, ok := share[s.Name]
		if !ok {
			continue
		}
		delete(share, s.Name)
		for _, f := range s.Frontends {
			sum := 0.0
			for _, p := range f.Endpoints {
				sum += p.Share
				if math.Abs(p.Share-want(p)) > 0.001 {
					return fmt.Errorf("%s: %s: the share of %v is %.3f, want %.3f: %s", n.Name, s.Name, p.Addr, p.Share, want(p), p.Reason)
				}
			}
			if math.Abs(sum-1) > 0.001 || !f.InKernel || len(f.Ahead) > 0 {
				return fmt.Errorf("%s: %s: the shares add up to %.3f, the kernel holds them: %v, ahead of strait: %v", n.Name, s.Name, sum, f.InKernel, f.Ahead)
			}
		}
	}
	if len(share) > 0 {
		return fmt.Errorf("%s: %d of the Services that are called are not explained", n.Name, len(share))
	}
	return nil
}
