package locality

import (
	"context"
	"fmt"
	"os/exec"
	"slices"
	"strings"
	"testing"
	"time"

	"strait.io/strait/daemon/api"
	"strait.io/strait/internal/testutil"
)

// TestBlackHole closes WireGuard's port while everything else works, so that gossip hears all nodes and
// the tunnel carries nothing. Traffic must leave, nothing may be emptied, and people must be told.
func TestBlackHole(t *testing.T) {
	t.Parallel()
	if _, err := exec.LookPath("nft"); err != nil {
		testutil.Missing(t, "needs nft: install the package nftables")
	}
	w := newWorld(t, 2)
	w.near.ready(0)
	both := shares{"us-west": 0.5, "eu-central": 0.5}
	w.settles(both)
	w.carries("us-west", "carrying")
	w.carries("eu-central", "carrying")
	w.whole(both)

	// What the near node sends does not arrive, and what the other end sends does. There, nothing comes
	// from any node.
	w.leaves(w.west, "STR4203", "input")
	w.reasoned("its node's tunnel carries packets from there only, since")
	w.west.problem("STR4206", "tunnels")
	w.west.open()
	w.carries("us-west", "returning")

	w.leaves(w.west, "STR4202", "output")
	w.west.open()
	w.carries("us-west", "returning")

	w.leaves(w.west, "STR4202", "input", "output")
	w.reasoned("standby: its node's tunnel carries nothing since")
	if out := w.near.strait("explain", serveName, "--what-if", "cluster eu-central down"); !strings.Contains(out, "us-west") {
		t.Errorf("what-if does not fall back on us-west:\n%s", out)
	}
	w.west.open()
	w.carries("us-west", "returning")
	began := time.Now()
	w.settlesWithin(both, 2*time.Minute)
	t.Logf("traffic is back %s after the tunnel carried again", time.Since(began).Round(time.Second))
	w.whole(both)

	// All at once: there is nothing else, so nothing is emptied.
	w.near.close("input", "output")
	w.near.problem("STR4206", "tunnels")
	w.settles(both)
	w.near.ready(2)
	w.settlesWithin(shares{"us-east": 1}, time.Minute)
	w.near.open()
	w.carries("us-west", "returning")
}

// whole demands that calls arrive as explained, and that none fails.
func (w *world) whole(want shares) {
	w.Helper()
	l, since := w.call(20*time.Millisecond), time.Now()
	w.counted(150, want)
	l.mustBeWhole(since)
}

// reasoned demands a reason why pods of us-west are not used.
func (w *world) reasoned(want string) {
	w.Helper()
	if r := w.reason("us-west"); !strings.Contains(r, want) {
		w.Errorf("the reason is %q", r)
	}
}

// close closes WireGuard's port for packets of a direction, at the cluster's node.
func (c *cluster) close(hooks ...string) {
	c.w.Helper()
	c.w.in(c.node, "nft", "add table inet closed")
	for _, h := range hooks {
		c.w.in(c.node, "nft", fmt.Sprintf("add chain inet closed %s { type filter hook %s priority -300; }", h, h))
		for _, end := range []string{"sport", "dport"} {
			c.w.in(c.node, "nft", fmt.Sprintf("add rule inet closed %s udp %s 51820 drop", h, end))
		}
	}
}

func (c *cluster) open() {
	c.w.Helper()
	c.w.in(c.node, "nft", "delete table inet closed")
}

// leaves closes the port of a cluster, and waits until no call goes there and people are told.
func (w *world) leaves(c *cluster, code string, hooks ...string) {
	w.Helper()
	l := w.call(50 * time.Millisecond)
	testutil.Eventually(w, patience, func() error { // it calls
		if len(l.since(time.Time{})) < 5 {
			return fmt.Errorf("no calls")
		}
		return nil
	})
	began := time.Now()
	c.close(hooks...)
	w.settles(shares{"eu-central": 1})
	w.Logf("closed %v: traffic left after %s", hooks, time.Since(began).Round(10*time.Millisecond))
	left := time.Now()
	w.near.problem(code, "tunnel to "+c.name+"/n1")
	w.Logf("closed %v: %s after %s", hooks, code, time.Since(began).Round(10*time.Millisecond))
	time.Sleep(time.Second)
	l.stop()
	failed := 0
	for _, a := range l.since(left) {
		if a.Err != "" {
			failed++
			w.Errorf("a call failed %s after the port was closed: %s", a.At.Sub(began), a.Err)
		}
	}
	w.Logf("closed %v: %d of %d calls failed after traffic left", hooks, failed, len(l.since(left)))
}

// problem waits until the cluster's daemon reports a Problem.
func (c *cluster) problem(code, object string) {
	c.w.Helper()
	testutil.Eventually(c.w, patience, func() error {
		ctx, cancel := context.WithTimeout(c.w.Context(), time.Second)
		defer cancel()
		s, err := c.api().Status(ctx)
		if err != nil {
			return err
		}
		var all []string
		for _, p := range s.Problems {
			all = append(all, string(p.Code)+" "+p.String())
			if string(p.Code) == code && p.Object == object {
				return nil
			}
		}
		return fmt.Errorf("%s: no %s of %s: %q", c.name, code, object, all)
	})
}

// carries waits until the near node's tunnel to a cluster is in a state.
func (w *world) carries(cluster, state string) {
	w.Helper()
	testutil.Eventually(w, patience, func() error {
		list, err := w.near.api().Nodes(w.Context())
		if err != nil {
			return err
		}
		i := slices.IndexFunc(list.Items, func(n api.Node) bool { return n.Cluster == cluster })
		if i < 0 || list.Items[i].Tunnel == nil {
			return fmt.Errorf("no tunnel to %s", cluster)
		}
		if got := list.Items[i].Tunnel.State; got != state {
			return fmt.Errorf("the tunnel to %s is %q, want %q", cluster, got, state)
		}
		return nil
	})
}
