package gossip

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"strait.io/strait/clustermesh"
	"strait.io/strait/clustermesh/authority"
)

// following returns the configuration of a daemon that has no root.
func following(c Config, pins authority.Pins) Config {
	c = signing(c, pins)
	c.Authority.Root = nil
	return c
}

// attesting is a configuration that signs for one key, and counts the tokens it saw.
func attesting(c Config, o clustermesh.Origin, tokens *atomic.Int64) Config {
	c.Attest = func(_ context.Context, r authority.Request) error {
		if r.Token == "the token" {
			tokens.Add(1)
		}
		if r.Want.Origin() != o || r.Want.Key != seeded("key of "+o.String()).Public() {
			return errors.New("it has another key")
		}
		return nil
	}
	return c
}

// tell publishes one endpoint of a node with pods in 10.n.0.0/16.
func (d *daemon) tell(n byte, number int) {
	d.Publish(placed(d.cfg.Self, n, fmt.Sprint(number)))
}

// TestFollower: a machine without the root is believed once one with the root signs for it, over a
// restart while there is no signer too. It never leads, whatever its name.
func TestFollower(t *testing.T) {
	t.Parallel()
	pins := pinned("west", "east")
	var tokens atomic.Int64
	first, second := origin("west", "n1"), origin("west", "n2")
	keeper := start(t, attesting(signing(config(second), pins), first, &tokens))
	keeper.tell(0, 2)
	followed := following(config(first, keeper.cfg.Bind), pins)
	followed.StateDir, followed.Token = t.TempDir(), func() (string, error) { return "the token", nil }
	follower := start(t, followed)
	content := placed(first, 0, "1")
	content.Node.Follower = true
	follower.Publish(content)
	east := start(t, signing(config(origin("east", "n1"), keeper.cfg.Bind), pins))
	eventually(t, "it is believed", func() bool { return east.said(first) == 1 && keeper.said(first) == 1 })
	eventually(t, "the one with the root leads", func() bool { return keeper.Leader() && !follower.Leader() })
	if tokens.Load() == 0 {
		t.Error("it proved nothing")
	}
	// What it says of itself changes, and so does the statement.
	content.Node.Prefixes = placed(first, 0, "").Node.Prefixes[:0]
	content.Node.Addresses = content.Node.Addresses[:1]
	content.Endpoints = nil
	follower.Publish(content)
	eventually(t, "the statement follows", func() bool {
		s, known := east.Trust().Statements[first]
		return known && len(s.Prefixes) == 0
	})

	keeper.stop()
	follower.stop()
	again := start(t, followed)
	content = placed(first, 0, "3")
	content.Node.Follower, content.Node.Prefixes, content.Endpoints = true, nil, nil
	content.Node.Addresses = placed(first, 0, "").Node.Addresses
	content.Node.GossipPort = 9
	again.Publish(content)
	eventually(t, "it is believed without a signer", func() bool {
		n := east.State().Records.Get(first).Content.Node
		return n != nil && n.GossipPort == 9
	})
	if again.Leader() {
		t.Error("it leads without the root")
	}
}

// TestFollowerIsRefused: a machine that the cluster does not know stays unbelieved, and says why.
func TestFollowerIsRefused(t *testing.T) {
	t.Parallel()
	pins := pinned("west")
	keeper := start(t, attesting(signing(config(origin("west", "n2")), pins), origin("west", "n9"), new(atomic.Int64)))
	keeper.tell(0, 2)
	follower := start(t, following(config(origin("west", "n1"), keeper.cfg.Bind), pins))
	follower.tell(0, 1)
	eventually(t, "it says why", func() bool {
		return follower.hasProblem("STR2311", "it has another key") || follower.hasProblem("node west/n1", "it has another key")
	})
	if n := keeper.said(origin("west", "n1")); n != -1 {
		t.Errorf("it is believed: %d", n)
	}
	if keeper.hasProblem("west", "without a signature") {
		t.Errorf("it spreads what no signer signed: %v", keeper.Problems())
	}
	eventually(t, "the other leads", func() bool { return keeper.Leader() })
}

// TestFalseSigner: who has the gossip key and another root is not asked; who is asked all the same gets
// neither a token nor trust.
func TestFalseSigner(t *testing.T) {
	t.Parallel()
	pins := pinned("west")
	var tokens atomic.Int64
	mallory := signing(config(origin("west", "n2")), pins)
	mallory.Authority.Root = root("mallory")
	mallory.Authority.Pins = nil
	start(t, attesting(mallory, origin("west", "n1"), &tokens))
	followed := following(config(origin("west", "n1"), mallory.Bind), pins)
	followed.Token = func() (string, error) { return "the token", nil }
	follower := start(t, followed)
	follower.tell(0, 1)
	eventually(t, "it finds no signer", func() bool {
		return follower.isMember(mallory.Self) && follower.hasProblem("no machine of the cluster that has its root is heard")
	})
	err := follower.askAt(t.Context(), mallory.Bind, authority.Statement{Cluster: "west", Node: "n1"})
	if err == nil || !strings.Contains(err.Error(), "does not have the pinned root") {
		t.Errorf("it is asked: %v", err)
	}
	if tokens.Load() > 0 || len(follower.Trust().Statements) > 0 {
		t.Errorf("%d tokens; trust %v", tokens.Load(), follower.Trust().Statements)
	}
}

// TestRevokedNode: a key that its cluster revoked counts nowhere, though other clusters changed nothing;
// neither over a restart, nor when the record is sent again. Another key of the node counts.
func TestRevokedNode(t *testing.T) {
	t.Parallel()
	pins := pinned("west", "east")
	var tokens atomic.Int64
	stolen := origin("west", "n1")
	keeper := start(t, attesting(signing(config(origin("west", "n2")), pins), stolen, &tokens))
	keeper.tell(0, 2)
	follower := start(t, following(config(stolen, keeper.cfg.Bind), pins))
	content := placed(stolen, 0, "1")
	content.Node.Follower = true
	follower.Publish(content)
	away := config(origin("east", "n1"), keeper.cfg.Bind)
	away.StateDir = t.TempDir()
	east := start(t, signing(away, pins))
	eventually(t, "it is believed", func() bool { return east.said(stolen) == 1 && keeper.said(stolen) == 1 })
	lead := func() { keeper.PublishCluster(clustermesh.Content{Nodes: []clustermesh.NodeName{"n1", "n2"}}) }
	eventually(t, "west leads", func() bool {
		lead()
		return len(east.State().Records.Get(origin("west", "")).Content.Nodes) == 2
	})
	old := keeper.entry(stolen)

	after := pinned("west", "east")
	pin := after["west"]
	pin.Revoked = []string{seeded("key of " + stolen.String()).Public().Fingerprint()}
	after["west"] = pin
	keeper.Repin(after)
	eventually(t, "no node believes it", func() bool {
		lead() // as daemons do in each turn
		return east.said(stolen) == -1 && keeper.said(stolen) == -1
	})
	if n := east.said(origin("west", "n2")); n != 2 {
		t.Errorf("the other node says %d", n)
	}
	eventually(t, "it is told", func() bool { return follower.hasProblem("node west/n1", "was revoked") })
	eventually(t, "east says so", func() bool { return east.hasProblem("cluster west", "the key was revoked") })
	east.inject(old)
	east.stop()
	east = start(t, signing(away, pins))
	eventually(t, "it hears west again", func() bool { return east.contact(origin("west", "n2")) == clustermesh.Alive })
	east.inject(old)
	time.Sleep(2 * beat)
	if n := east.said(stolen); n != -1 {
		t.Errorf("a restart believes it again: %d", n)
	}
}
