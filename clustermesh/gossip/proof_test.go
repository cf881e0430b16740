package gossip

import (
	"fmt"
	"net/netip"
	"slices"
	"testing"
	"time"

	"strait.io/strait/clustermesh"
	"strait.io/strait/clustermesh/gossip/node"
	"strait.io/strait/clustermesh/replica"
)

// TestImpostor: an attacker that has the gossip key and claims to be a node that is down, in a
// later life too, does not make it alive, and is seen. The node itself is alive when it returns,
// hears what others say, and is heard, though the impostor is there still.
func TestImpostor(t *testing.T) {
	t.Parallel()
	pins := pinned("west", "east")
	west := signing(config(origin("west", "n1")), pins)
	east := signing(config(origin("east", "n1"), west.Bind), pins)
	dw, de := start(t, west), start(t, east)
	dw.tell(0, 1)
	de.tell(1, 2)
	both := func() bool {
		return dw.contact(east.Self) == clustermesh.Alive && de.contact(west.Self) == clustermesh.Alive
	}
	eventually(t, "they hear each other", func() bool { return both() && dw.said(east.Self) == 2 && de.said(west.Self) == 1 })
	if n := dw.Refused()["identity"] + de.Refused()["identity"]; n > 0 {
		t.Errorf("%d refused among honest daemons", n)
	}

	// Its life begins later than any that the node itself can have in this test.
	later := config(east.Self, west.Bind)
	later.StateDir = t.TempDir()
	save(t, later.StateDir, ahead9(t, east.Self))
	start(t, later).say(3)
	eventually(t, "the impostor is there", func() bool { return dw.Refused()["identity"] > 0 && len(at(dw, east.Self)) == 2 })
	de.stop()
	eventually(t, "the node is gone", func() bool { return slices.Equal(at(dw, east.Self), []string{later.Bind.String()}) })
	for end := time.Now().Add(3 * time.Second); time.Now().Before(end); time.Sleep(20 * time.Millisecond) {
		if c := dw.contact(east.Self); c == clustermesh.Alive {
			t.Fatal("the impostor made the node alive")
		}
	}
	if !dw.hasProblem("cluster east", "claims to be one of its nodes", "for example east/n1") {
		t.Errorf("no Problem: %v", dw.Problems())
	}

	de = start(t, east)
	de.tell(1, 4)
	eventually(t, "the node is back", func() bool { return both() && dw.said(east.Self) == 4 })
	dw.tell(0, 5)
	eventually(t, "it hears what others say", func() bool { return de.said(west.Self) == 5 })
	for o, s := range dw.Trust().Statements {
		if o == east.Self && s.Key != seeded("key of east/n1").Public() {
			t.Errorf("the impostor's key is believed")
		}
	}
}

// ahead9 is a record from almost ten minutes ahead: a daemon that finds it as its own begins a life after it.
func ahead9(t *testing.T, o clustermesh.Origin) replica.Entry {
	t.Helper()
	e, err := replica.NewEntry(clustermesh.Record{Origin: o, Stamp: clustermesh.Stamp{Epoch: uint64(time.Now().Add(9 * time.Minute).UnixNano()), Version: 1}})
	if err != nil {
		t.Fatal(err)
	}
	return e
}

func save(t *testing.T, dir string, e replica.Entry) {
	t.Helper()
	saveState(t, dir, []replica.Entry{e})
}

// at returns at which addresses a node is a member.
func at(d *daemon, o clustermesh.Origin) (out []string) {
	if !slices.Contains(d.members(), o) {
		return nil
	}
	d.do(func(n *node.Node, now time.Time) {
		for _, a := range n.Contacts().Duplicates(now.Add(time.Hour))[o] {
			out = append(out, a.String())
		}
		if out == nil {
			out = []string{n.Contacts().Addr(o).String()}
		}
	})
	slices.Sort(out)
	return out
}

// members returns the nodes whose daemons are members.
func (d *daemon) members() []clustermesh.Origin {
	return ask(d.Gossip, func(n *node.Node, _ time.Time) []clustermesh.Origin { return n.Contacts().Members() })
}

// statement returns the statement about this node.
func (d *daemon) statement() []byte { return ask(d.Gossip, (*node.Node).Statement) }

// TestLongStatements: a node with many prefixes is heard, whether its statement has room in the handshake
// or not.
func TestLongStatements(t *testing.T) {
	pins := pinned("west", "east")
	west := start(t, signing(config(origin("west", "n1")), pins))
	west.tell(0, 1)
	for i, n := range []int{700, 900} {
		o := origin("east", fmt.Sprint("n", i))
		east := start(t, signing(config(o, west.cfg.Bind), pins))
		c := placed(o, 1, "2")
		for p := range n {
			c.Node.Prefixes = append(c.Node.Prefixes, netip.PrefixFrom(netip.AddrFrom16([16]byte{0: 0xfd, 14: byte(p >> 8), 15: byte(p)}), 128))
		}
		east.Publish(c)
		eventually(t, "they hear each other", func() bool {
			return west.contact(o) == clustermesh.Alive && east.contact(west.cfg.Self) == clustermesh.Alive && west.said(o) == 2 && east.said(west.cfg.Self) == 1
		})
		t.Logf("a statement of %d bytes", len(east.statement()))
	}
}
