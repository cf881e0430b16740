package netfilter_test

import (
	"os/exec"
	"testing"
	"time"

	"strait.io/strait/datapath"
	"strait.io/strait/internal/problem"
	"strait.io/strait/internal/testutil"
)

// TestEntry: other clusters call Services through the node. What serves ClusterIPs replaces the address, and
// the call goes on to a pod of the node, which sees the caller, or beyond it, with the node's address. What
// was not replaced, what is no Service's, and what would leave for a third cluster is dropped.
func TestEntry(t *testing.T) {
	nft, err := exec.LookPath("nft")
	if err != nil {
		testutil.Missing(t, "needs nft: run `make setup` as root")
	}
	p, neighbour := filteredPath(t)
	const beyond, near, unserved, back, beyond6 = "10.96.0.10", "10.96.0.11", "10.96.0.12", "10.96.0.13", "fd00:96::10"
	must(t, p.node.Do(func() error { // as kube-proxy does
		return exec.Command(nft, "add table inet proxy; add chain inet proxy services { type nat hook prerouting priority dstnat; }; "+
			"add rule inet proxy services ip daddr "+beyond+" dnat ip to "+neighbour4+"; add rule inet proxy services ip daddr "+near+" dnat ip to "+pod4+"; "+
			"add rule inet proxy services ip daddr "+back+" dnat ip to "+far4+"; "+
			"add rule inet proxy services ip6 daddr "+beyond6+" dnat ip6 to "+neighbour6).Run()
	}))
	// It answers only what its own network can send, and would take what has no Service.
	must(t, neighbour.Do(func() error {
		addresses(t, "eth0", unserved+"/32")
		return withoutDefault(t)
	}))
	must(t, p.node.Do(func() error { return exec.Command("ip", "route", "add", "10.96.0.0/16", "via", neighbour4).Run() }))
	calls := func(addr string, is bool) {
		t.Helper()
		wait := 300 * time.Millisecond
		if is {
			wait = 10 * time.Second
		}
		if err := call(p.far, addr, "80", wait); (err == nil) != is {
			t.Errorf("another cluster calls %s: %v, want an answer: %v", addr, err, is)
		}
	}
	want := sources()
	put := func(ranges ...string) {
		t.Helper()
		want.ClusterIPs = prefixesOf(ranges...)
		must(t, p.node.Do(func() error { return problem.Strict(newTable(t).Reconcile(want, true)) }))
	}
	put()
	calls(near, true) // it ends at a pod of the node
	calls(beyond, false)
	put("10.96.0.0/16", "fd00:96::/112")
	calls(near, true)
	calls(beyond, true)
	calls(beyond6, true)
	for _, a := range []string{neighbour4, neighbour6, nodeUnder4, unserved, back} {
		calls(a, false)
	}
	want.Guests = []datapath.Guest{{Name: "laptop", Range: prefixesOf(far4 + "/32")}}
	put("10.96.0.0/16")
	calls(beyond, false) // a guest has a pin of its own, which does not include it
	calls(near, true)
	want.Guests = nil
	put("10.96.0.11/32")
	calls(beyond, false)
}
