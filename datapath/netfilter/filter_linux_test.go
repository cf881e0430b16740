package netfilter_test

import (
	"fmt"
	"net"
	"net/netip"
	"os/exec"
	"regexp"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/google/nftables"
	"github.com/google/nftables/expr"

	"strait.io/strait/datapath"
	"strait.io/strait/datapath/netfilter"
	"strait.io/strait/internal/problem"
	"strait.io/strait/internal/testutil"
)

// The node's underlay, where a neighbour listens, and the node's own address there.
const (
	nodeUnder4, neighbour4 = "192.168.7.1", "192.168.7.2"
	nodeUnder6, neighbour6 = "fd00:7::1", "fd00:7::2"
)

// filteredPath is a path whose node has an underlay with a neighbour. The far side sends whatever it likes
// into the tunnel, and all namespaces listen on port 80.
func filteredPath(t *testing.T) (*path, *testutil.Namespace) {
	t.Helper()
	p := newPath(t)
	neighbour := namespace(t)
	must(t, p.node.Do(func() error {
		cable(t, "eth0", neighbour)
		addresses(t, "eth0", nodeUnder4+"/24", nodeUnder6+"/64")
		return serve(t)
	}))
	must(t, neighbour.Do(func() error {
		addresses(t, "eth0", neighbour4+"/24", neighbour6+"/64")
		routesVia(t, "eth0", nodeUnder4, nodeUnder6)
		return serve(t)
	}))
	must(t, p.pod.Do(func() error { return serve(t) }))
	return p, neighbour
}

// call connects from a namespace to port 80 and returns whether it could.
func call(from *testutil.Namespace, to, port string, timeout time.Duration) error {
	return from.Do(func() error {
		c, err := net.DialTimeout("tcp", net.JoinHostPort(to, port), timeout)
		if err != nil {
			return err
		}
		return c.Close()
	})
}

// TestFilter: from the tunnel, another cluster reaches the node's pods, and neither the node's
// listeners nor what is behind the node.
func TestFilter(t *testing.T) {
	p, _ := filteredPath(t)
	protected := []string{nodeInside, nodeUnder4, neighbour4, nodeOuter4, nodeUnder6, neighbour6, "fd00:1::1"}
	open := []string{pod4, pod6}
	for _, a := range append(protected, open...) {
		must(t, call(p.far, a, "80", 10*time.Second)) // without the table, everything is open
	}
	want := sources()
	want.Port = 7946
	must(t, p.node.Do(func() error { return problem.Strict(newTable(t).Reconcile(want, true)) }))
	for _, a := range open {
		if err := call(p.far, a, "80", 10*time.Second); err != nil {
			t.Errorf("the pod does not answer: %v", err)
		}
	}
	before := dropped(t, p.node)
	for _, a := range protected {
		if err := call(p.far, a, "80", 300*time.Millisecond); err == nil {
			t.Errorf("%s answers through the tunnel", a)
		}
	}
	if got := dropped(t, p.node); got < before+uint64(len(protected)) {
		t.Errorf("%d packets counted for %d calls", got-before, len(protected))
	}
}

// TestFilterLetsPass: what the node and its pods ask for is answered, and so is what strait itself
// needs inside the tunnel.
func TestFilterLetsPass(t *testing.T) {
	p, neighbour := filteredPath(t)
	want := sources()
	want.Port = 7946
	must(t, p.node.Do(func() error { return problem.Strict(newTable(t).Reconcile(want, true)) }))
	p.sees(t, far4, pod4)
	p.sees(t, far6, pod6)
	for _, a := range []string{far4, far6} {
		if err := call(p.node, a, "80", 10*time.Second); err != nil {
			t.Errorf("the node has no answer: %v", err)
		}
		// As a client of a NodePort: it is no pod, and leaves with the node's address.
		if a == far4 {
			if err := call(neighbour, a, "80", 10*time.Second); err != nil {
				t.Errorf("a client outside the node has no answer: %v", err)
			}
		}
	}
	var l net.Listener
	must(t, p.node.Do(func() (err error) {
		l, err = net.Listen("tcp", net.JoinHostPort(nodeInside, "7946"))
		return err
	}))
	t.Cleanup(func() { l.Close() })
	if err := call(p.far, nodeInside, "7946", 10*time.Second); err != nil {
		t.Errorf("a peer's daemon does not reach the node's: %v", err)
	}
	l.Close()
	if err := call(p.far, nodeInside, "7946", 10*time.Second); err == nil || isTimeout(err) {
		t.Errorf("a closed port of the daemon's: %v, want a refusal, which tells a live machine", err)
	}
	if ping, err := exec.LookPath("ping"); err == nil {
		must(t, p.far.Do(func() error {
			out, err := exec.Command(ping, "-c1", "-W5", nodeInside).CombinedOutput()
			if err != nil {
				return fmt.Errorf("ping: %w\n%s", err, out)
			}
			return nil
		}))
	}
}

// TestUntracked: where connections of pods' addresses are not tracked, answers to the node are
// dropped, and counted apart from what is refused.
func TestUntracked(t *testing.T) {
	tool, err := exec.LookPath("nft")
	if err != nil {
		testutil.Missing(t, "needs nft: install the package nftables")
	}
	p, _ := filteredPath(t)
	table := newTable(t)
	drops := func() (got netfilter.Drops) {
		must(t, p.node.Do(func() (err error) {
			got, err = table.Drops()
			return err
		}))
		return got
	}
	if got := drops(); got != (netfilter.Drops{}) {
		t.Errorf("without a table: %+v", got)
	}
	must(t, p.node.Do(func() error { return problem.Strict(table.Reconcile(sources(), true)) }))
	must(t, call(p.node, far4, "80", 10*time.Second))
	if err := call(p.far, nodeUnder4, "80", 300*time.Millisecond); err == nil {
		t.Errorf("%s answers through the tunnel", nodeUnder4)
	}
	before := drops()
	if before.Untracked != 0 || before.Refused == 0 {
		t.Errorf("all is tracked: %+v", before)
	}
	// As Cilium's installNoConntrackIptablesRules does for the range of pods.
	notrack := fmt.Sprintf(`table ip raw {
		chain PREROUTING { type filter hook prerouting priority raw; ip saddr %[1]s notrack; ip daddr %[1]s notrack; }
		chain OUTPUT { type filter hook output priority raw; ip saddr %[1]s notrack; ip daddr %[1]s notrack; }
	}`, far4)
	must(t, p.node.Do(func() error {
		cmd := exec.Command(tool, "-f", "-")
		cmd.Stdin = strings.NewReader(notrack)
		out, err := cmd.CombinedOutput()
		if err != nil {
			return fmt.Errorf("nft: %w\n%s", err, out)
		}
		return nil
	}))
	if err := call(p.node, far4, "80", 1500*time.Millisecond); !isTimeout(err) {
		t.Errorf("an untracked call of the node: %v, want a time-out", err)
	}
	if err := call(p.pod, far4, "80", 10*time.Second); err != nil {
		t.Errorf("an untracked call of a pod: %v", err)
	}
	if err := call(p.far, nodeUnder4, "80", 300*time.Millisecond); err == nil {
		t.Errorf("%s answers untracked packets through the tunnel", nodeUnder4)
	}
	if got := drops(); got.Untracked < 2 || got.Refused != before.Refused {
		t.Errorf("%+v, before %+v", got, before)
	}
}

// TestFilterWaits: nothing is dropped before the node knows its prefixes.
func TestFilterWaits(t *testing.T) {
	p, _ := filteredPath(t)
	must(t, p.node.Do(func() error { return problem.Strict(newTable(t).Reconcile(datapath.Sources{}, false)) }))
	must(t, call(p.far, pod4, "80", 10*time.Second))
	must(t, p.node.Do(func() error {
		return problem.Strict(newTable(t).Reconcile(datapath.Sources{Node: netip.MustParseAddr(nodeInside)}, true))
	}))
	must(t, call(p.far, pod4, "80", 10*time.Second))
}

// TestFilterOnlyTheTunnel: other devices are not the table's business.
func TestFilterOnlyTheTunnel(t *testing.T) {
	p, neighbour := filteredPath(t)
	must(t, p.node.Do(func() error { return problem.Strict(newTable(t).Reconcile(sources(), true)) }))
	for _, a := range []string{nodeUnder4, nodeUnder6, nodeInside, pod4, pod6} {
		if err := call(neighbour, a, "80", 10*time.Second); err != nil {
			t.Errorf("from the underlay: %v", err)
		}
	}
	for _, a := range []string{neighbour4, neighbour6, nodeUnder4} {
		if err := call(p.pod, a, "80", 10*time.Second); err != nil {
			t.Errorf("from a pod: %v", err)
		}
	}
	must(t, p.node.Do(netfilter.CleanUp))
	must(t, call(p.far, neighbour4, "80", 10*time.Second))
}

func isTimeout(err error) bool {
	ne, ok := err.(net.Error)
	return ok && ne.Timeout()
}

// dropped returns what the filter counted, from the kernel, and if there is nft, as docs/ports.md shows how
// to look.
func dropped(t *testing.T, node *testutil.Namespace) (sum uint64) {
	t.Helper()
	must(t, node.Do(func() error {
		var c nftables.Conn
		table := &nftables.Table{Name: "strait", Family: nftables.TableFamilyINet}
		for _, chain := range []string{"filterinput", "filterforward"} {
			rules, err := c.GetRules(table, &nftables.Chain{Name: chain, Table: table})
			if err != nil {
				return err
			}
			for _, r := range rules {
				for _, e := range r.Exprs {
					if n, is := e.(*expr.Counter); is {
						sum += n.Packets
					}
				}
			}
		}
		return nil
	}))
	tool, err := exec.LookPath("nft")
	if err != nil {
		return sum
	}
	var shown uint64
	must(t, node.Do(func() error {
		out, err := exec.Command(tool, "list", "table", "inet", "strait").CombinedOutput()
		for _, m := range regexp.MustCompile(`counter packets (\d+)`).FindAllStringSubmatch(string(out), -1) {
			n, _ := strconv.ParseUint(m[1], 10, 64)
			shown += n
		}
		return err
	}))
	if shown < sum { // later, so it can be more
		t.Errorf("nft shows %d dropped packets, the kernel has %d", shown, sum)
	}
	return sum
}
