package faults

import (
	"fmt"
	"net"
	"net/netip"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	"strait.io/strait/clustermesh"
	"strait.io/strait/datapath"
	"strait.io/strait/datapath/socklb/inspect"
	"strait.io/strait/internal/testutil"
)

// A pod that uses the network of another cluster's node is reached through the tunnel, also one that
// listens on the node's own address only.
func TestPodsOnTheHost(t *testing.T) {
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
	ask := func(addr string) (who string, err error) {
		err = here.ns.Do(func() error {
			c, err := net.DialTimeout("tcp", addr, time.Second)
			if err != nil {
				return err
			}
			defer c.Close()
			b := make([]byte, 64)
			n, err := c.Read(b)
			who = string(b[:n])
			return err
		})
		return who, err
	}
	testutil.Eventually(t, patience, func() error {
		who, err := ask(at.String())
		if own := clustermesh.TunnelAddr(clustermesh.Origin{Cluster: "c1", Node: "n1"}, false); err == nil && !strings.HasPrefix(who, own.String()+":") {
			t.Fatalf("the pod sees %s, want %s, an address in the tunnel", who, own)
		}
		return err
	})
	if who, err := ask(netip.AddrPortFrom(inside, 22).String()); err == nil {
		t.Errorf("a port that is nobody's answers through the tunnel: %q", who)
	}
}
