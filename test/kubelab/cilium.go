package kubelab

import (
	"fmt"
	"os"
	"os/exec"
	"slices"

	"strait.io/strait/test/kubelab/machine"
	"strait.io/strait/test/kubelab/programs"
)

// ciliumCompiler is what Cilium's image calls clang: the agent compiles its programs on each node.
const ciliumCompiler = "clang-19"

// Flags of the agent: instead of kube-proxy, masquerading by eBPF, and without tunnels.
var (
	instead    = []string{"--kube-proxy-replacement=true", "--bpf-lb-sock=true"}
	masquerade = slices.Concat(instead, []string{"--enable-bpf-masquerade=true"})
	native     = slices.Concat(masquerade, []string{"--routing-mode=native", "--auto-direct-node-routes=true"})
)

// cilium is Cilium with tunnels of VXLAN and the options that its Helm chart has by default, except
// for what needs other programs (Envoy, Hubble). More options are given as flags of the agent. It
// replaces kube-proxy if they say so.
func cilium(more ...string) network {
	n := network{
		programs: programs.Set{"cilium"}, needs: []string{ciliumCompiler}, sources: "github.com/cilium/cilium",
		files:         map[string]string{"cilium.conflist": "cni/05-cilium.conflist"},
		replacesProxy: slices.Contains(more, instead[0]),
		prepare:       (*Lab).prepareCilium,
		inForce:       ciliumInForce(more),
	}
	n.daemon = func(l *Lab, c *Cluster, n Node) []machine.Service { return l.ciliumServices(c, n, more) }
	return n
}

// ciliumInForce succeeds on a node where the agent with these options has attached its programs, or
// taken them away: those at sockets if it replaces kube-proxy, and the device of the tunnel.
func ciliumInForce(more []string) string {
	proxy, tunnel := "test -e /sys/fs/bpf/cilium/socketlb/links/cgroup/cil_sock4_connect", "ip link show cilium_vxlan"
	if !slices.Contains(more, instead[0]) {
		proxy = "! " + proxy
	}
	if slices.Contains(more, "--routing-mode=native") {
		tunnel = "! " + tunnel
	}
	healthy := "curl -sS --fail --unix-socket /run/cilium/cilium.sock -H 'brief: true' http://localhost/v1/healthz"
	return healthy + " && " + proxy + " && " + tunnel
}

// prepareCilium gives a node what Cilium's image has: the source of its programs, and the compiler
// under its usual name.
func (l *Lab) prepareCilium(c *Cluster, n Node) error {
	library := l.path(n.Name, "lib", "cilium", "bpf")
	if err := os.CopyFS(library, os.DirFS(l.CNIs[c.Name].Source+"/bpf")); err != nil {
		return fmt.Errorf("copy Cilium's programs: %w", err)
	}
	clang, err := exec.LookPath(ciliumCompiler)
	if err != nil {
		return unfit("Cilium compiles its programs: %w", err)
	}
	return os.Symlink(clang, l.path(n.Name, "bin", "clang"))
}

// ciliumServices are the agent and, on the first node of the cluster, the operator.
func (l *Lab) ciliumServices(c *Cluster, n Node, more []string) []machine.Service {
	flags := []string{
		"--k8s-kubeconfig-path=" + l.path(c.Name, "cni.kubeconfig"), "--k8s-namespace=kube-system",
		"--cluster-name=" + c.Name, "--cluster-id=0", "--ipam=kubernetes",
		"--enable-ipv4=true", "--enable-ipv6=false", "--identity-allocation-mode=crd",
	}
	agent := append(slices.Clone(flags), fmt.Sprintf("--ipv4-native-routing-cidr=10.1%d.0.0/16", c.Index),
		"--routing-mode=tunnel", "--tunnel-protocol=vxlan", "--enable-ipv4-masquerade=true", "--monitor-aggregation=medium",
		"--preallocate-bpf-maps=false", "--cgroup-root="+NodeCgroup, "--bpf-root=/sys/fs/bpf",
		"--enable-l7-proxy=false", "--enable-hubble=false", "--enable-health-checking=false", "--enable-endpoint-health-checking=false")
	out := []machine.Service{l.cniService(c, n, "cilium-agent", slices.Concat(agent, more)...)}
	if n.Name == c.Nodes[0].Name {
		out = append(out, l.cniService(c, n, "cilium-operator", append(flags, "--enable-metrics=false")...))
	}
	for i := range out {
		out[i].Env = append(out[i].Env, "K8S_NODE_NAME="+n.Name, "CILIUM_K8S_NAMESPACE=kube-system")
	}
	return out
}
