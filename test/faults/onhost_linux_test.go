package faults

import (
	"errors"
	"fmt"
	"net"
	"net/netip"
	"os"
	"os/exec"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/vishvananda/netlink"

	"strait.io/strait/clustermesh"
	"strait.io/strait/datapath"
	"strait.io/strait/datapath/socklb/inspect"
	"strait.io/strait/internal/testutil"
)

// A pod that uses the network of another cluster's node is reached through the tunnel, also one that
// listens on the node's own address only.
func TestPodsOnTheHost(t *testing.T) {
	t.Parallel()
	machines := bridged(t, 2)
	pinned(t, machines)
	here, there := machines[0], machines[1]
	there.write(t, "manifests/serve.yaml", strings.ReplaceAll(service("serve"), "10.9.9.9", there.addr()))
	must(t, os.Remove(here.path("manifests/serve.yaml")))
	must(t, there.ns.Do(func() error {
		l, err := net.Listen("tcp", there.addr()+":8080")
		if err != nil {
			return err
		}
		t.Cleanup(func() { l.Close() })
		go func() {
			for c, err := l.Accept(); err == nil; c, err = l.Accept() {
				_, _ = c.Write([]byte(c.RemoteAddr().String())) // who asked reads nothing if this fails
				c.Close()
			}
		}()
		return nil
	}))
	here.start(t).isReady(t)
	there.start(t).isReady(t)

	inside := clustermesh.TunnelAddr(clustermesh.Origin{Cluster: "c2", Node: "n1"}, false)
	at := netip.AddrPortFrom(inside, 8080)
	testutil.Eventually(t, patience, func() error {
		fs, err := inspect.Read(here.pins())
		leads := func(f datapath.Frontend) bool {
			return f.Addr.Port == 80 && len(f.Backends) == 1 && f.Backends[0].AddrPort() == at
		}
		if err == nil && !slices.ContainsFunc(fs, leads) {
			err = fmt.Errorf("nothing leads to %s: %v", at, fs)
		}
		return err
	})
	here.leadsThrough(t, inside.String(), here.config["mesh"].(tree)["device"].(string))
	ask := func(addr string) (string, error) { return askFrom(here.ns, addr) }
	testutil.Eventually(t, patience, func() error {
		who, err := ask(at.String())
		if own := clustermesh.TunnelAddr(clustermesh.Origin{Cluster: "c1", Node: "n1"}, false); err == nil && !strings.HasPrefix(who, own.String()+":") {
			t.Fatalf("the pod sees %s, want %s, an address in the tunnel", who, own)
		}
		return err
	})
	if who, err := ask(netip.AddrPortFrom(inside, 22).String()); err == nil {
		t.Errorf("a port on which no pod listens answers through the tunnel: %q", who)
	}

	// kube-proxy, too, sends to the address inside the tunnel, which the slices of derived Services list:
	// for the node itself, whose source address is chosen before, and for pods.
	here.proxies(t, "10.96.0.9", at)
	for _, c := range []struct {
		who  *testutil.Namespace
		want netip.Addr
	}{
		{here.ns, clustermesh.TunnelAddr(clustermesh.Origin{Cluster: "c1", Node: "n1"}, false)},
		{here.client(t, "10.9.1.9"), netip.MustParseAddr("10.9.1.9")},
	} {
		testutil.Eventually(t, patience, func() error {
			who, err := askFrom(c.who, "10.96.0.9:80")
			if err == nil && !strings.HasPrefix(who, c.want.String()+":") {
				t.Fatalf("by kube-proxy, the pod sees %s, want %s, an address in the tunnel", who, c.want)
			}
			return err
		})
	}
}

// askFrom connects from a namespace, and returns what it is told.
func askFrom(ns *testutil.Namespace, addr string) (answer string, err error) {
	err = ns.Do(func() error {
		c, err := net.DialTimeout("tcp", addr, time.Second)
		if err != nil {
			return err
		}
		defer c.Close()
		b := make([]byte, 64)
		n, err := c.Read(b)
		answer = string(b[:n])
		return err
	})
	return answer, err
}

// proxies makes the machine send what is for port 80 of an address elsewhere, as kube-proxy does.
func (m *machine) proxies(t *testing.T, service string, to netip.AddrPort) {
	t.Helper()
	rule := fmt.Sprintf("ip daddr %s tcp dport 80 dnat to %s", service, to)
	rules := "table ip kubeproxy {\n" +
		"chain output { type nat hook output priority -100; " + rule + "; }\n" +
		"chain prerouting { type nat hook prerouting priority -100; " + rule + "; }\n}\n"
	must(t, m.ns.Do(func() error {
		if err := os.WriteFile("/proc/sys/net/ipv4/ip_forward", []byte("1"), 0o644); err != nil {
			return err
		}
		cmd := exec.Command("nft", "-f", "-")
		cmd.Stdin = strings.NewReader(rules)
		if out, err := cmd.CombinedOutput(); err != nil {
			return fmt.Errorf("nft: %w: %s", err, out)
		}
		return netlink.RouteAdd(&netlink.Route{Gw: net.ParseIP("172.31.9.254")}) // the address is chosen by it
	}))
}

// client makes a pod of the machine, which the socket hooks do not see.
func (m *machine) client(t *testing.T, addr string) *testutil.Namespace {
	t.Helper()
	ns := aside(t)
	must(t, m.ns.Do(func() error {
		err := netlink.LinkAdd(&netlink.Veth{LinkAttrs: netlink.LinkAttrs{Name: "pod0"}, PeerName: "eth0", PeerNamespace: netlink.NsFd(ns.FD())})
		if err != nil {
			return err
		}
		pod0, err := netlink.LinkByName("pod0")
		if err != nil {
			return err
		}
		gateway, _ := netlink.ParseAddr("169.254.1.1/32")
		_, dst, _ := net.ParseCIDR(addr + "/32")
		return errors.Join(netlink.AddrAdd(pod0, gateway), netlink.LinkSetUp(pod0),
			netlink.RouteAdd(&netlink.Route{LinkIndex: pod0.Attrs().Index, Dst: dst, Scope: netlink.SCOPE_LINK}))
	}))
	must(t, ns.Do(func() error {
		eth0, err := netlink.LinkByName("eth0")
		if err != nil {
			return err
		}
		own, _ := netlink.ParseAddr(addr + "/32")
		gateway := net.ParseIP("169.254.1.1")
		_, dst, _ := net.ParseCIDR("169.254.1.1/32")
		return errors.Join(netlink.AddrAdd(eth0, own), netlink.LinkSetUp(eth0),
			netlink.RouteAdd(&netlink.Route{LinkIndex: eth0.Attrs().Index, Dst: dst, Scope: netlink.SCOPE_LINK}),
			netlink.RouteAdd(&netlink.Route{LinkIndex: eth0.Attrs().Index, Gw: gateway}))
	}))
	return ns
}
