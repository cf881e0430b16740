package faults

import (
	"crypto/sha256"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"os"
	"testing"

	"github.com/vishvananda/netlink"
	"golang.org/x/sys/unix"

	"strait.io/strait/clustermesh"
	"strait.io/strait/clustermesh/authority"
	"strait.io/strait/internal/testutil"
)

// rootOf returns the root key of a cluster.
func rootOf(cluster string) authority.PrivateKey { return sha256.Sum256([]byte(cluster)) }

// pinned gives each machine the root of its cluster, and the pins of all of them: a cluster has the pods
// 10.9.N.0/24 and the address of each of its machines, where N is the machine's number.
func pinned(t *testing.T, machines []*machine) {
	t.Helper()
	pins := authority.Pins{}
	roots := map[*machine]authority.PrivateKey{}
	for _, m := range machines {
		name := m.config["cluster"].(string)
		roots[m] = rootOf(name)
		p := pins[clustermesh.ClusterName(name)]
		p.Cluster, p.Roots, p.Namespaces = clustermesh.ClusterName(name), []authority.PublicKey{roots[m].Public()}, []string{"*"}
		p.Pods = append(p.Pods, netip.MustParsePrefix(fmt.Sprintf("10.9.%d.0/24", m.number)))
		p.Nodes = append(p.Nodes, netip.PrefixFrom(netip.MustParseAddr(m.addr()), 32))
		pins[p.Cluster] = p
	}
	for _, m := range machines {
		root := roots[m]
		m.write(t, "root.key", root.Base64())
		m.write(t, "pins.yaml", string(pins.Encode()))
		m.config["authority"] = tree{"rootFile": m.path("root.key"), "pinsFile": m.path("pins.yaml")}
	}
}

// leadsThrough waits until packets to an address leave a machine through a device, or until they do
// not leave it at all if device is empty.
func (m *machine) leadsThrough(t *testing.T, addr, device string) {
	t.Helper()
	testutil.Eventually(t, patience, func() error {
		return m.ns.Do(func() error {
			routes, err := netlink.RouteGet(net.ParseIP(addr))
			if errors.Is(err, unix.EHOSTUNREACH) && device == "" {
				return nil
			}
			if err != nil {
				return err
			}
			link, err := netlink.LinkByIndex(routes[0].LinkIndex)
			if err == nil && link.Attrs().Name != device {
				err = fmt.Errorf("packets to %s leave through %s, want %q", addr, link.Attrs().Name, device)
			}
			return err
		})
	})
}

// Packets to the pods of another cluster leave through tunnels only: also those to pods that no node
// has yet, and to those of a node that is gone. With mesh.strict off they leave as any other packet.
func TestNothingLeavesInClear(t *testing.T) {
	t.Parallel()
	machines := bridged(t, 2)
	pinned(t, machines)
	here, there := machines[0], machines[1]
	must(t, here.ns.Do(func() error { // a way out for everything
		gateway := net.ParseIP("172.31.9.254")
		return netlink.RouteAdd(&netlink.Route{Gw: gateway})
	}))
	there.config["nodePrefixes"] = []string{"10.9.2.0/25"}
	a, b := here.start(t), there.start(t)
	a.isReady(t)
	b.isReady(t)
	device := here.config["mesh"].(tree)["device"].(string)
	here.leadsThrough(t, "10.9.2.9", device)
	here.leadsThrough(t, "10.9.2.200", "")
	here.leadsThrough(t, "10.9.3.9", "eth0") // no pod has it

	b.stop(t)
	there.config["nodePrefixes"] = []string{"10.9.2.128/25"}
	there.start(t).isReady(t)
	here.leadsThrough(t, "10.9.2.200", device)
	here.leadsThrough(t, "10.9.2.9", "")

	a.stop(t)
	here.config["mesh"].(tree)["strict"] = false
	must(t, os.RemoveAll(here.path("state")))
	here.start(t).isReady(t)
	here.leadsThrough(t, "10.9.2.200", device)
	here.leadsThrough(t, "10.9.2.9", "eth0")
}
