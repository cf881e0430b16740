package kubelab

import (
	"context"
	"fmt"
	"net"
	"net/netip"
	"os"
	"slices"
	"time"

	"github.com/vishvananda/netlink"

	"strait.io/strait/internal/fabric"
)

// readyWithin is how long a program may take until it serves, on a busy machine.
const readyWithin = 2 * time.Minute

// bridgeOf returns the name of the switch that the cluster's nodes are plugged into.
func bridgeOf(c *Cluster) string { return "nodes-" + c.Name }

// ownTable is the table of the fabric's routes for its own packets, and not for those that it forwards.
const ownTable = 100

// makeFabric makes the machine that runs etcd and the API servers. It routes between the clusters'
// nodes but not to pods: between clusters, only a tunnel carries pods' packets. The API servers
// themselves reach the pods of their clusters, as they do for webhooks and services/proxy.
func (l *Lab) makeFabric() error {
	ns := l.netns(fabricName)
	if err := fabric.AddNS(ns); err != nil {
		return err
	}
	if err := fabric.MakeRouter(ns); err != nil {
		return err
	}
	return fabric.WithHandle(ns, func(h *netlink.Handle) error {
		for i := range l.Topology.Clusters {
			c := &l.Topology.Clusters[i]
			if err := fabric.AddBridge(h, bridgeOf(c), netip.PrefixFrom(c.Gateway, c.Underlay.Bits())); err != nil {
				return err
			}
			for _, n := range c.Nodes {
				route := netlink.Route{Dst: &net.IPNet{IP: n.Pods.Addr().AsSlice(), Mask: net.CIDRMask(n.Pods.Bits(), 32)}, Gw: n.Addr.AsSlice(), Src: c.Gateway.AsSlice(), Table: ownTable}
				if err := h.RouteAdd(&route); err != nil {
					return fmt.Errorf("add the API server's route to the pods of %s: %w", n.Name, err)
				}
			}
		}
		own := netlink.NewRule()
		own.IifName, own.Table, own.Priority = "lo", ownTable, ownTable
		if err := h.RuleAdd(own); err != nil {
			return fmt.Errorf("add the rule of the API servers' routes: %w", err)
		}
		return nil
	})
}

// startEtcd starts the etcd that all clusters share. Each cluster has its own prefix in it.
func (l *Lab) startEtcd() error {
	_, err := l.start(process{machine: fabricName, name: "etcd", argv: []string{
		l.program("etcd"), "--data-dir", l.path("etcd"), "--unsafe-no-fsync", "--log-level", "warn",
		"--listen-client-urls", "http://127.0.0.1:2379", "--advertise-client-urls", "http://127.0.0.1:2379",
		"--listen-peer-urls", "http://127.0.0.1:2380", "--initial-advertise-peer-urls", "http://127.0.0.1:2380",
		"--initial-cluster", "default=http://127.0.0.1:2380",
	}})
	return err
}

func apiServerName(c *Cluster) string { return c.Name + "-apiserver" }

func (l *Lab) startAPIServer(_ context.Context, c *Cluster) error {
	pki := func(name string) string { return l.path(c.Name, name) }
	ranges := c.Services.String()
	if slices.Contains(l.DualStack, c.Name) {
		ranges += "," + c.Services6.String()
	}
	program := "kube-apiserver"
	switch {
	case slices.Contains(l.Oldest, c.Name):
		program += "-oldest"
	case slices.Contains(l.Newest, c.Name):
		program += "-newest"
	}
	_, err := l.start(process{machine: fabricName, name: apiServerName(c), argv: []string{
		l.program(program),
		"--etcd-servers=http://127.0.0.1:2379", "--etcd-prefix=/" + c.Name,
		"--bind-address=" + c.Gateway.String(), "--advertise-address=" + c.Gateway.String(),
		fmt.Sprintf("--secure-port=%d", c.server().Port()),
		"--tls-cert-file=" + pki("apiserver.crt"), "--tls-private-key-file=" + pki("apiserver.key"),
		"--client-ca-file=" + pki("ca.crt"),
		"--kubelet-client-certificate=" + pki("kubelet-client.crt"), "--kubelet-client-key=" + pki("kubelet-client.key"),
		"--kubelet-certificate-authority=" + pki("ca.crt"), "--kubelet-preferred-address-types=InternalIP",
		// Without these the controllers log a missing ConfigMap every few seconds.
		"--requestheader-client-ca-file=" + pki("ca.crt"), "--requestheader-allowed-names=front-proxy",
		"--requestheader-username-headers=X-Remote-User", "--requestheader-group-headers=X-Remote-Group",
		"--requestheader-extra-headers-prefix=X-Remote-Extra-",
		"--proxy-client-cert-file=" + pki("front-proxy.crt"), "--proxy-client-key-file=" + pki("front-proxy.key"),
		"--service-account-issuer=https://kubernetes.default.svc",
		"--service-account-key-file=" + pki("tokens.pub"), "--service-account-signing-key-file=" + pki("tokens.key"),
		"--service-cluster-ip-range=" + ranges,
		"--authorization-mode=Node,RBAC", "--allow-privileged=true", "--profiling=false",
	}})
	return err
}

// startForward makes the API server reachable from the root network namespace. It opens a listener
// there and passes it to a process in the fabric.
func (l *Lab) startForward(_ context.Context, c *Cluster) error {
	listener, err := net.ListenTCP("tcp", net.TCPAddrFromAddrPort(netip.MustParseAddrPort("127.0.0.1:0")))
	if err != nil {
		return fmt.Errorf("listen for the API server's clients: %w", err)
	}
	defer listener.Close()
	file, err := listener.File()
	if err != nil {
		return fmt.Errorf("pass the listener on: %w", err)
	}
	defer file.Close()
	_, err = l.start(process{
		machine: fabricName, name: c.Name + "-forward", files: []*os.File{file},
		argv: []string{l.path("bin", "forward"), c.server().String()},
	})
	if err != nil {
		return err
	}
	server := "https://" + listener.Addr().String()
	if err := os.WriteFile(l.path(c.Name, "server"), []byte(server), 0o644); err != nil {
		return fmt.Errorf("write address of the API server: %w", err)
	}
	_, err = l.writeConfigOf(c, "admin", server)
	return err
}

// awaitAPIServer waits until the API server reports that it is ready.
func (l *Lab) awaitAPIServer(ctx context.Context, c *Cluster) error {
	return await(ctx, readyWithin, "the API server is not ready; see "+l.path("log"), func() error {
		_, err := l.Kubectl(ctx, c.Name, nil, "get", "--raw", "/readyz", "--request-timeout=5s")
		return err
	})
}

// await calls check until it returns nil. If that takes longer than within, it returns check's last
// error, after what.
func await(ctx context.Context, within time.Duration, what string, check func() error) error {
	ctx, cancel := context.WithTimeout(ctx, within)
	defer cancel()
	for {
		err := check()
		if err == nil {
			return nil
		}
		select {
		case <-ctx.Done():
			return fmt.Errorf("%s: %w", what, err)
		case <-time.After(100 * time.Millisecond):
		}
	}
}

// objectControllers are the controllers that work only on objects, for clusters without nodes.
// Those that watch nodes would evict the pods of a cluster whose nodes are only objects.
const objectControllers = "endpointslice-controller,endpointslice-mirroring-controller,namespace-controller," +
	"daemonset-controller,deployment-controller,replicaset-controller,serviceaccount-controller,root-ca-certificate-publisher-controller,garbage-collector-controller"

// startControllers starts the controller manager and, if the cluster has nodes, the scheduler. Both
// exit if the API server's RBAC rules are not in place yet.
func (l *Lab) startControllers(_ context.Context, c *Cluster) error {
	server := "https://" + c.server().String()
	config, err := l.writeConfigOf(c, "controllers", server)
	if err != nil {
		return err
	}
	client := func(config string) []string {
		return []string{
			"--kubeconfig=" + config, "--authentication-kubeconfig=" + config, "--authorization-kubeconfig=" + config,
			"--leader-elect=false", "--bind-address=127.0.0.1",
		}
	}
	argv := append([]string{
		l.program("kube-controller-manager"), fmt.Sprintf("--secure-port=%d", 10500+c.Index),
		"--service-account-private-key-file=" + l.path(c.Name, "tokens.key"), "--root-ca-file=" + l.path(c.Name, "ca.crt"),
		// The lab creates Node objects with their podCIDRs, so that the CNI files can name them.
		"--use-service-account-credentials=true", "--allocate-node-cidrs=false",
	}, client(config)...)
	if len(c.Nodes) == 0 {
		argv = append(argv, "--controllers="+objectControllers)
	}
	if _, err := l.start(process{machine: fabricName, name: c.Name + "-controllers", argv: argv}); err != nil || len(c.Nodes) == 0 {
		return err
	}
	if config, err = l.writeConfigOf(c, "scheduler", server); err != nil {
		return err
	}
	argv = append([]string{l.program("kube-scheduler"), fmt.Sprintf("--secure-port=%d", 10600+c.Index)}, client(config)...)
	_, err = l.start(process{machine: fabricName, name: c.Name + "-scheduler", argv: argv})
	return err
}

// StopAPIServer kills a cluster's API server. What runs on the nodes keeps running without it.
func (l *Lab) StopAPIServer(ctx context.Context, cluster string) error {
	c, err := l.Topology.Cluster(cluster)
	if err != nil {
		return err
	}
	return l.stop(ctx, apiServerName(c))
}

// StartAPIServer undoes StopAPIServer, and waits until the API server is ready. Its address stays
// the same.
func (l *Lab) StartAPIServer(ctx context.Context, cluster string) error {
	c, err := l.Topology.Cluster(cluster)
	if err != nil {
		return err
	}
	if err := l.startAPIServer(ctx, c); err != nil {
		return err
	}
	return l.awaitAPIServer(ctx, c)
}
