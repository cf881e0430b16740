package netfilter_test

import (
	"net"
	"net/netip"
	"os/exec"
	"testing"
	"time"

	"github.com/vishvananda/netlink"

	"strait.io/strait/datapath"
	"strait.io/strait/internal/problem"
	"strait.io/strait/internal/testutil"
)

func prefixesOf(ss ...string) (out []netip.Prefix) {
	for _, s := range ss {
		out = append(out, netip.MustParsePrefix(s))
	}
	return out
}

// TestGuest: a machine outside every cluster reaches the node's pods, and besides only what its pin
// says: never the node, nor anything else behind it. Where it is let through, it has the node's address.
func TestGuest(t *testing.T) {
	p, neighbour := filteredPath(t)
	want := sources()
	want.Port = 7946
	guest := datapath.Guest{Name: "laptop", Range: prefixesOf(far4+"/32", far6+"/128")}
	put := func(to ...string) {
		t.Helper()
		guest.To = prefixesOf(to...)
		want.Guests = []datapath.Guest{guest}
		must(t, p.node.Do(func() error { return problem.Strict(newTable(t).Reconcile(want, true)) }))
	}
	reaches := func(addr, port string, is bool) {
		t.Helper()
		wait := 300 * time.Millisecond
		if is {
			wait = 10 * time.Second
		}
		if err := call(p.far, addr, port, wait); (err == nil) != is {
			t.Errorf("the guest calls %s: %v, want an answer: %v, to %v", addr, err, is, guest.To)
		}
	}
	put()
	for _, a := range []string{pod4, pod6} {
		reaches(a, "80", true)
	}
	for _, a := range []string{nodeInside, nodeUnder4, neighbour4, neighbour6} {
		reaches(a, "80", false)
	}
	if err := call(p.far, nodeInside, "7946", 300*time.Millisecond); !isTimeout(err) {
		t.Errorf("the guest hears from the daemon's port: %v", err)
	}

	put(neighbour4+"/32", "fd00:7::/64")
	reaches(neighbour4, "80", true)
	reaches(neighbour6, "80", true)
	for _, a := range []string{nodeUnder4, nodeUnder6, nodeInside} { // fd00:7::/64 has the node's address
		reaches(a, "80", false)
	}
	must(t, neighbour.Do(func() error { return withoutDefault(t) }))
	reaches(neighbour4, "80", true) // it answers the node's address, since it has no route to the guest's

	put()
	reaches(neighbour4, "80", false)
}

// TestGuestCallsAService: the address counts that the guest called, not that of the pod behind it.
func TestGuestCallsAService(t *testing.T) {
	nft, err := exec.LookPath("nft")
	if err != nil {
		testutil.Missing(t, "needs nft: run `make setup` as root")
	}
	p, _ := filteredPath(t)
	want := sources()
	const service = "10.96.0.10"
	must(t, p.node.Do(func() error { // as kube-proxy does
		return exec.Command(nft, "add table ip proxy; add chain ip proxy services { type nat hook prerouting priority dstnat; }; "+
			"add rule ip proxy services ip daddr "+service+" dnat to "+neighbour4).Run()
	}))
	put := func(to ...string) {
		t.Helper()
		want.Guests = []datapath.Guest{{Name: "laptop", Range: prefixesOf(far4 + "/32"), To: prefixesOf(to...)}}
		must(t, p.node.Do(func() error { return problem.Strict(newTable(t).Reconcile(want, true)) }))
	}
	put("10.96.0.0/16")
	if err := call(p.far, service, "80", 10*time.Second); err != nil {
		t.Errorf("the Service does not answer: %v", err)
	}
	if err := call(p.far, neighbour4, "80", 300*time.Millisecond); err == nil {
		t.Error("the pod behind the Service answers at its own address, which the pin does not have")
	}
	put("10.97.0.0/16")
	if err := call(p.far, service, "80", 300*time.Millisecond); err == nil {
		t.Error("a Service outside the pin answers")
	}
}

// withoutDefault removes the default route of the namespace.
func withoutDefault(t *testing.T) error {
	t.Helper()
	l, err := netlink.LinkByName("eth0")
	if err != nil {
		return err
	}
	return netlink.RouteDel(&netlink.Route{LinkIndex: l.Attrs().Index, Gw: net.ParseIP(nodeUnder4)})
}

// TestInForce: the filter counts only while the kernel has it.
func TestInForce(t *testing.T) {
	p, _ := filteredPath(t)
	table := newTable(t)
	must(t, p.node.Do(func() error {
		for _, step := range []struct {
			want  datapath.Sources
			prune bool
			in    bool
		}{{datapath.Sources{}, false, false}, {sources(), false, true}, {datapath.Sources{}, false, true}, {datapath.Sources{}, true, false}} {
			if err := problem.Strict(table.Reconcile(step.want, step.prune)); err != nil {
				return err
			}
			if table.InForce() != step.in {
				t.Errorf("after %+v with prune %v, the table is in force: %v", step.want, step.prune, table.InForce())
			}
		}
		return nil
	}))
}
