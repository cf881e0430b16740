package kubelab

import (
	"context"
	"fmt"
	"io"
	"maps"
	"os/exec"
	"slices"
	"strings"
	"time"

	"strait.io/strait/test/kubelab/machine"
	"strait.io/strait/test/kubelab/programs"
)

// CNI is the pod network of a cluster.
type CNI struct {
	// Name is one of CNIs.
	Name string `json:"name"`
	// Programs is the folder of its own programs, if it has any. Source is the folder of its source
	// code, if the programs read that.
	Programs string `json:"programs,omitempty"`
	Source   string `json:"source,omitempty"`
}

// network is what the nodes of a cluster with a CNI have and run.
type network struct {
	// programs are the modules of its own programs.
	programs programs.Set
	// needs are this machine's programs that they run, besides those that every lab needs. sources
	// is a module whose source they read.
	needs   []string
	sources string
	// files are files in config, and where in the node's folder they go.
	files map[string]string
	// prepare gives a node what else its programs need, if they do.
	prepare func(*Lab, *Cluster, Node) error
	// daemon returns what runs on each node. It also routes between the nodes' pods. Without one,
	// the lab does.
	daemon func(*Lab, *Cluster, Node) []machine.Service
	// replacesProxy says that no kube-proxy runs.
	replacesProxy bool
	// inForce is a shell command that succeeds on a node where what the daemon's options say has
	// come into force. Without one, they cannot change while the cluster is up.
	inForce string
}

// networks are the CNIs that there are.
var networks = map[string]network{
	"bridge":                {files: map[string]string{"bridge.conflist": "cni/10-lab.conflist"}},
	"ptp":                   {files: map[string]string{"ptp.conflist": "cni/10-lab.conflist"}},
	"flannel-vxlan":         flannel("vxlan", viaVXLAN),
	"flannel-host-gw":       flannel("host-gw", "! ("+viaVXLAN+") && ip route | grep '^10[.].* via 172[.].* dev eth0'"),
	"cilium":                cilium(),
	"cilium-no-proxy":       cilium(instead...),
	"cilium-host-sockets":   cilium(slices.Concat(instead, []string{"--bpf-lb-sock-hostns-only=true"})...),
	"cilium-bpf-masquerade": cilium(masquerade...),
	"cilium-native":         cilium(native...),
	"cilium-no-conntrack":   cilium(slices.Concat(native, []string{"--install-no-conntrack-iptables-rules=true"})...),
	"kube-router": {
		programs: programs.Set{"kube-router"}, needs: []string{"ipset"}, daemon: kubeRouter,
		files: map[string]string{"kube-router.conflist": "cni/10-kuberouter.conflist"},
	},
}

// CNIs returns the names of the CNIs that there are, sorted.
func CNIs() []string { return slices.Sorted(maps.Keys(networks)) }

// ParseCNIs reads a comma-separated list of clusters and the names of their CNIs, such as
// "c1=flannel-vxlan,c2=ptp".
func ParseCNIs(list string) (map[string]string, error) {
	out := map[string]string{}
	for each := range strings.SplitSeq(list, ",") {
		cluster, name, ok := strings.Cut(each, "=")
		if _, known := networks[name]; !ok || !known {
			return nil, fmt.Errorf("CNIs %q: want CLUSTER=NAME, comma-separated, where NAME is %s", list, strings.Join(CNIs(), ", "))
		}
		out[cluster] = name
	}
	return out, nil
}

// BuildCNI returns the CNI with this name. It first builds its programs if they are not built yet,
// and writes a line about each to progress.
func BuildCNI(ctx context.Context, name, source string, progress io.Writer) (CNI, error) {
	n, ok := networks[name]
	if !ok {
		return CNI{}, fmt.Errorf("no CNI %q: there are %s", name, strings.Join(CNIs(), ", "))
	}
	for _, p := range n.needs {
		if _, err := exec.LookPath(p); err != nil {
			return CNI{}, unfit("CNI %s: %w: run `make test-cni`, which installs it on Debian and Ubuntu", name, err)
		}
	}
	out := CNI{Name: name}
	var err error
	if len(n.programs) > 0 {
		if out.Programs, err = n.programs.Build(ctx, source, progress); err != nil {
			return CNI{}, err
		}
	}
	if n.sources != "" {
		out.Source, err = n.programs.Source(ctx, source, n.sources)
	}
	return out, err
}

// ChangeCNI gives a cluster that is up another configuration of the CNI that it has, such as
// flannel's other backend. Pods keep running. It returns when that is in force on all nodes.
func (l *Lab) ChangeCNI(ctx context.Context, cluster, name string) error {
	c, err := l.Topology.Cluster(cluster)
	if err != nil {
		return err
	}
	old, is := l.network(c), networks[name]
	if is.inForce == "" || !slices.Equal(old.programs, is.programs) {
		return fmt.Errorf("cluster %s: its CNI cannot become %q while the cluster is up", cluster, name)
	}
	l.CNIs = maps.Clone(l.CNIs)
	cni := l.CNIs[cluster]
	cni.Name = name
	l.CNIs[cluster] = cni
	if err := l.save(); err != nil {
		return err
	}
	for _, n := range c.Nodes {
		if err := l.reload(ctx, c, n); err != nil {
			return err
		}
		if is.replacesProxy && !old.replacesProxy {
			if err := l.clearProxy(ctx, n); err != nil {
				return err
			}
		}
	}
	for _, n := range c.Nodes {
		err := await(ctx, readyWithin, "node "+n.Name+" has not become "+name+"; see "+l.path("log"), func() error {
			_, err := l.OnNode(ctx, n.Name, "sh", "-c", is.inForce)
			return err
		})
		if err != nil {
			return err
		}
	}
	return nil
}

// StartCNI starts the CNI on a node that NodeUpBeforeCNI brought up. It returns when the node is
// Ready.
func (l *Lab) StartCNI(ctx context.Context, node string) error {
	c, n, err := l.find(node)
	if err != nil {
		return err
	}
	start := time.Now()
	if err := l.reload(ctx, c, n); err != nil {
		return err
	}
	return l.awaitHeartbeat(ctx, c, n, start, "True", "")
}

// reload writes a node's files again, and makes its init process run the services that they say.
func (l *Lab) reload(ctx context.Context, c *Cluster, n Node) error {
	if err := l.writeNodeFiles(c, n, l.network(c)); err != nil {
		return err
	}
	if _, err := l.OnNode(ctx, n.Name, "kill", "-HUP", "1"); err != nil {
		return fmt.Errorf("reload the services of %s: %w", n.Name, err)
	}
	return nil
}

// clearProxy removes what kube-proxy, which is told to end, leaves on a node.
func (l *Lab) clearProxy(ctx context.Context, n Node) error {
	err := await(ctx, readyWithin, "kube-proxy of "+n.Name+" does not end", func() error {
		out, err := l.OnNode(ctx, n.Name, "sh", "-c", "grep -lz '^"+l.program("kube-proxy")+"$' /proc/[0-9]*/cmdline 2>/dev/null || true")
		if err == nil && out != "" {
			err = fmt.Errorf("still there: %s", out)
		}
		return err
	})
	if err != nil {
		return err
	}
	if _, err := l.OnNode(ctx, n.Name, l.program("kube-proxy"), "--cleanup"); err != nil {
		return fmt.Errorf("clean up after kube-proxy: %w", err)
	}
	return nil
}

// network returns that of a cluster.
func (l *Lab) network(c *Cluster) network {
	name := "bridge"
	if !c.PodCIDRs {
		name = "ptp"
	}
	if own, ok := l.CNIs[c.Name]; ok {
		name = own.Name
	}
	return networks[name]
}

// held is the network of a node that the CNI has not reached yet.
func (n network) held() network {
	n.files = nil
	if n.daemon != nil {
		n.daemon = func(*Lab, *Cluster, Node) []machine.Service { return nil }
	}
	return n
}

// ReplacesProxy reports whether ClusterIPs answer only when the CNI's programs run, because there
// is no kube-proxy.
func (c CNI) ReplacesProxy() bool { return networks[c.Name].replacesProxy }

// cniService is a program of the cluster's CNI on a node.
func (l *Lab) cniService(c *Cluster, n Node, name string, args ...string) machine.Service {
	return machine.Service{
		Argv: append([]string{l.CNIs[c.Name].Programs + "/" + name}, args...),
		Env:  []string{"NODE_NAME=" + n.Name},
		Log:  l.path("log", n.Name+"."+name+".log"),
	}
}

// viaVXLAN succeeds on a node that reaches the pods of others by flannel's tunnels.
const viaVXLAN = "ip route | grep 'dev flannel.1'"

// flannel is flannel with one of its backends. Its own CNI plug-in only passes a configuration on
// to the plug-in bridge; the lab writes that itself.
func flannel(backend, inForce string) network {
	config := "flannel-" + backend + ".json"
	return network{
		inForce:  inForce,
		programs: programs.Set{"flannel"},
		files: map[string]string{
			"flannel.conflist": "cni/10-flannel.conflist", config: config,
		},
		daemon: func(l *Lab, c *Cluster, n Node) []machine.Service {
			return []machine.Service{l.cniService(c, n, "flannel",
				"--kube-subnet-mgr", "--kubeconfig-file="+l.path(c.Name, "cni.kubeconfig"), "--ip-masq", "--iface=eth0",
				"--net-config-path="+l.path(n.Name, config))}
		},
	}
}

// RestartCNI kills the programs of the CNI on a node. The node's init process starts them again.
func (l *Lab) RestartCNI(ctx context.Context, node string) error {
	c, n, err := l.find(node)
	if err != nil {
		return err
	}
	network := l.network(c)
	if network.daemon == nil {
		return nil
	}
	for _, s := range network.daemon(l, c, n) {
		kill := "kill -KILL $(grep -lz '^" + s.Argv[0] + "$' /proc/[0-9]*/cmdline 2>/dev/null | cut -d/ -f3)"
		if _, err := l.OnNode(ctx, node, "sh", "-c", kill); err != nil {
			return fmt.Errorf("restart the CNI of %s: %w", node, err)
		}
	}
	return nil
}

// kubeRouter is kube-router as router and firewall. It routes by BGP between nodes of one subnet,
// so that it needs no tunnels, which the kernel may lack.
func kubeRouter(l *Lab, c *Cluster, n Node) []machine.Service {
	s := l.cniService(c, n, "kube-router",
		"--run-router=true", "--run-firewall=true", "--run-service-proxy=false", "--enable-overlay=false", "--enable-cni=true",
		"--kubeconfig="+l.path(c.Name, "cni.kubeconfig"), "--hostname-override="+n.Name, "--health-port=0",
		// Its first look comes before the nodes have addresses, and the next one by default in 5
		// minutes.
		"--routes-sync-period=10s",
		"--service-cluster-ip-range="+c.Services.String())
	s.Env = append(s.Env, "KUBE_ROUTER_CNI_CONF_FILE="+l.path(n.Name, "cni/10-kuberouter.conflist"))
	return []machine.Service{s}
}
