package kubelab

import (
	"bytes"
	"context"
	"embed"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"net/netip"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"text/template"
	"time"

	"github.com/vishvananda/netlink"
	"golang.org/x/sync/errgroup"

	"strait.io/strait/internal/fabric"
	"strait.io/strait/test/kubelab/machine"
)

// NodeCgroup is where a node has its own cgroup v2. A hook that is attached there sees the node's
// own pods and no other node's. (/sys/fs/cgroup on a node is the whole machine's, with all nodes.)
const NodeCgroup = "/run/lab/cgroup"

//go:embed config
var configs embed.FS

// render fills in one of the files in config.
func render(name string, data any) ([]byte, error) {
	t, err := template.ParseFS(configs, "config/"+name)
	if err != nil {
		return nil, fmt.Errorf("parse %s: %w", name, err)
	}
	var out bytes.Buffer
	if err := t.Execute(&out, data); err != nil {
		return nil, fmt.Errorf("fill in %s: %w", name, err)
	}
	return out.Bytes(), nil
}

// nodesUp starts all nodes of a cluster and loads the images on them.
func (l *Lab) nodesUp(ctx context.Context, c *Cluster) error {
	if _, err := l.writeConfigOf(c, "proxy", "https://"+c.server().String()); err != nil {
		return err
	}
	all, ctx := errgroup.WithContext(ctx)
	for _, n := range c.Nodes {
		all.Go(func() error {
			return l.nodeUp(ctx, c, n, l.network(c))
		})
	}
	return all.Wait()
}

// NodeUp brings back a node that NodeDown killed, as a new machine with the same name and address:
// its disk holds only the lab's images. It returns when the node is Ready.
func (l *Lab) NodeUp(ctx context.Context, name string) error {
	c, n, err := l.find(name)
	if err != nil {
		return err
	}
	start := time.Now()
	if err := l.nodeUp(ctx, c, n, l.network(c)); err != nil {
		return err
	}
	return l.awaitHeartbeat(ctx, c, n, start, "True", "")
}

// NodeUpBeforeCNI is NodeUp for a node that its CNI has not reached yet: none of the CNI's programs
// runs there, and the node is not Ready until StartCNI.
func (l *Lab) NodeUpBeforeCNI(ctx context.Context, name string) error {
	c, n, err := l.find(name)
	if err != nil {
		return err
	}
	start := time.Now()
	if err := l.nodeUp(ctx, c, n, l.network(c).held()); err != nil {
		return err
	}
	return l.awaitHeartbeat(ctx, c, n, start, "False", "cni plugin not initialized")
}

// awaitHeartbeat waits until a node has reported after since that its condition Ready is as wanted,
// with a message that contains the words. A report from before its death can still be in its
// status.
func (l *Lab) awaitHeartbeat(ctx context.Context, c *Cluster, n Node, since time.Time, ready, words string) error {
	return await(ctx, readyWithin, "node "+n.Name+" does not come up; see "+l.path("log"), func() error {
		out, err := l.Kubectl(ctx, c.Name, nil, "get", "node", n.Name, "-o",
			`jsonpath={range .status.conditions[?(@.type=="Ready")]}{.status} {.lastHeartbeatTime} {.message}{end}`)
		if err != nil {
			return err
		}
		status, rest, _ := strings.Cut(out, " ")
		text, message, _ := strings.Cut(rest, " ")
		heartbeat, err := time.Parse(time.RFC3339, text)
		if err != nil {
			return fmt.Errorf("read heartbeat: %w", err)
		}
		if status != ready || !strings.Contains(message, words) || heartbeat.Before(since.Truncate(time.Second)) {
			return fmt.Errorf("its condition Ready is %s as of %s: %s", status, text, message)
		}
		return nil
	})
}

// NodeDown kills a node without warning: first its link goes down, so that no last message gets
// out. Then everything on the node is removed.
func (l *Lab) NodeDown(ctx context.Context, name string) error {
	_, n, err := l.find(name)
	if err != nil {
		return err
	}
	err = fabric.WithHandle(l.netns(fabricName), func(h *netlink.Handle) error { return fabric.SetDown(h, n.Name) })
	if err != nil {
		return err
	}
	if err := fabric.KillCgroup(ctx, l.cgroup(n.Name)); err != nil {
		return err
	}
	var errs []error
	for _, dir := range l.cgroups() {
		errs = append(errs, fabric.RemoveCgroup(filepath.Join(dir, n.Name)))
	}
	err = fabric.WithHandle(l.netns(fabricName), func(h *netlink.Handle) error {
		link, err := h.LinkByName(n.Name)
		if err != nil {
			return fmt.Errorf("find link %s: %w", n.Name, err)
		}
		return h.LinkDel(link)
	})
	return errors.Join(append(errs, err, fabric.RemoveNS(l.netns(n.Name)), os.RemoveAll(l.path(n.Name)))...)
}

// find returns the node with this name in any cluster, and its cluster.
func (l *Lab) find(name string) (*Cluster, Node, error) {
	for i := range l.Topology.Clusters {
		if n, err := l.Topology.Clusters[i].Node(name); err == nil {
			return &l.Topology.Clusters[i], n, nil
		}
	}
	return nil, Node{}, fmt.Errorf("no node %q in the lab", name)
}

// nodeUp makes the node's namespaces, starts its init process, and loads the images.
func (l *Lab) nodeUp(ctx context.Context, c *Cluster, n Node, is network) error {
	if err := l.startNode(c, n, is); err != nil {
		return fmt.Errorf("node %s: %w", n.Name, err)
	}
	return l.importAll(ctx, n)
}

func (l *Lab) startNode(c *Cluster, n Node, is network) error {
	if err := l.cableUp(c, n, is); err != nil {
		return err
	}
	if err := l.makeNodeCgroups(n.Name); err != nil {
		return err
	}
	if err := l.writeNodeFiles(c, n, is); err != nil {
		return err
	}
	if is.prepare != nil {
		if err := is.prepare(l, c, n); err != nil {
			return err
		}
	}
	pid, err := l.start(process{
		machine: n.Name, name: "init", cloneflags: syscall.CLONE_NEWNS | syscall.CLONE_NEWPID,
		argv: []string{l.path("bin", "init"), l.path(n.Name, "machine.json")},
	})
	if err != nil {
		return err
	}
	if err := os.WriteFile(l.path(n.Name, "pid"), []byte(strconv.Itoa(pid)), 0o644); err != nil {
		return fmt.Errorf("write process ID: %w", err)
	}
	return nil
}

// cableUp makes the node's network: a port on its cluster's switch and, unless the CNI sees to them
// itself, routes to its neighbours' pods.
func (l *Lab) cableUp(c *Cluster, n Node, is network) error {
	ns := l.netns(n.Name)
	if err := fabric.AddNS(ns); err != nil {
		return err
	}
	if err := fabric.MakeRouter(ns); err != nil {
		return err
	}
	cable := fabric.End{NS: ns, Link: "eth0", MAC: fabric.MACOf(n.Addr)}
	err := fabric.AddCable(cable, fabric.End{NS: l.netns(fabricName), Link: n.Name, Bridge: bridgeOf(c)})
	if err != nil {
		return err
	}
	return fabric.WithHandle(ns, func(h *netlink.Handle) error {
		if err := fabric.AddAddr(h, "eth0", netip.PrefixFrom(n.Addr, c.Underlay.Bits())); err != nil {
			return err
		}
		if err := fabric.AddRoute(h, netip.Prefix{}, c.Gateway); err != nil {
			return err
		}
		for _, other := range c.Nodes {
			if other.Name == n.Name || is.daemon != nil {
				continue
			}
			if err := fabric.AddRoute(h, other.Pods, other.Addr); err != nil {
				return err
			}
		}
		return nil
	})
}

// writeNodeFiles writes the node's configuration to its folder, which is its disk.
func (l *Lab) writeNodeFiles(c *Cluster, n Node, is network) error {
	for _, d := range []string{"bin", "cni", "lib", "log"} {
		if err := os.MkdirAll(l.path(n.Name, d), 0o755); err != nil {
			return fmt.Errorf("make folder of the node: %w", err)
		}
	}
	for _, user := range []string{n.Name, "cni"} {
		if _, err := l.writeConfigOf(c, user, "https://"+c.server().String()); err != nil {
			return err
		}
	}
	data := struct {
		Lab, Dir, PKI, Plugins string
		Cluster                *Cluster
		Node                   Node
	}{l.Name, l.path(n.Name), l.path(c.Name), l.CNIs[c.Name].Programs, c, n}
	files := map[string]string{
		"containerd.toml": "containerd.toml", "kubelet.yaml": "kubelet.yaml", "proxy.yaml": "proxy.yaml", "resolv.conf": "resolv.conf",
	}
	maps.Copy(files, is.files)
	for name, file := range files {
		text, err := render(name, data)
		if err != nil {
			return err
		}
		if err := os.WriteFile(l.path(n.Name, file), text, 0o644); err != nil {
			return fmt.Errorf("write configuration of the node: %w", err)
		}
	}
	return l.writeMachine(c, n, is)
}

// socket is where containerd listens on each node.
const socket = "/run/containerd/containerd.sock"

// ctr returns a command line for containerd's own client, to be run on a node.
func (l *Lab) ctr(args ...string) []string {
	return append([]string{l.program("ctr"), "-a", socket, "-n", "k8s.io"}, args...)
}

func (l *Lab) writeMachine(c *Cluster, n Node, is network) error {
	service := func(name string, args ...string) machine.Service {
		return machine.Service{
			Argv: append([]string{l.program(name)}, args...), Log: l.path("log", n.Name+"."+name+".log"),
		}
	}
	m := machine.Machine{
		Root: l.path(n.Name), Cgroup: l.cgroup(n.Name), CgroupAt: NodeCgroup,
		Path:    l.path(n.Name, "bin") + ":" + l.Programs + ":/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin",
		Runtime: service("containerd", "-c", l.path(n.Name, "containerd.toml")),
		Socket:  socket, Load: l.ctr("images", "import", l.path("images", "pause.tar")),
		Services: []machine.Service{
			service("kubelet", "--config="+l.path(n.Name, "kubelet.yaml"),
				"--kubeconfig="+l.path(c.Name, n.Name+".kubeconfig"),
				"--hostname-override="+n.Name, "--node-ip="+n.Addr.String()),
		},
	}
	if !is.replacesProxy {
		m.Services = append(m.Services, service("kube-proxy", "--config="+l.path(n.Name, "proxy.yaml")))
	}
	if is.daemon != nil {
		m.Services = append(m.Services, is.daemon(l, c, n)...)
	}
	b, err := json.MarshalIndent(m, "", "  ")
	if err != nil {
		return fmt.Errorf("encode machine: %w", err)
	}
	if err := os.WriteFile(l.path(n.Name, "machine.json"), b, 0o644); err != nil {
		return fmt.Errorf("write machine: %w", err)
	}
	return nil
}
