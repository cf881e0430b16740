package gossip

import (
	"context"
	"io"
	"log/slog"
	"net"
	"net/netip"
	"testing"
	"time"

	"strait.io/strait/clustermesh"
	"strait.io/strait/clustermesh/authority"
	"strait.io/strait/clustermesh/gossip/member"
	"strait.io/strait/clustermesh/gossip/stream"
	"strait.io/strait/internal/gossipkey"
)

// answering makes a daemon answer each query with its name.
func answering(c Config) Config {
	c.Answer = func(conn net.Conn) {
		_, _ = io.WriteString(conn, c.Self.String())
		conn.Close()
	}
	return c
}

// reads returns what comes on a connection of Query.
func reads(conn net.Conn, err error) string {
	if err != nil {
		return ""
	}
	defer conn.Close()
	answer, _ := io.ReadAll(conn)
	return string(answer)
}

func (d *daemon) asks(node clustermesh.NodeName) string {
	ctx, cancel := context.WithTimeout(d.t.Context(), patience)
	defer cancel()
	return reads(d.Query(ctx, node))
}

// intruder queries daemons wherever they are, and trusts each of them.
type intruder struct {
	stream.Host
	at netip.AddrPort
}

func (i intruder) Addr(clustermesh.Origin) netip.AddrPort { return i.at }
func (intruder) Admit(stream.Peer, string) (stream.Session, bool, error) {
	return nil, true, nil
}
func (intruder) Missed(clustermesh.Origin, netip.AddrPort) {}
func (intruder) Trusts(stream.Peer) error                  { return nil }
func (intruder) Answer(net.Conn)                           {}

// intrudes returns what a daemon answers one that has only some gossip keys, and what else it says.
func (d *daemon) intrudes(as clustermesh.Origin, keys gossipkey.Ring, says stream.Credentials) string {
	d.t.Helper()
	i := intruder{at: d.cfg.Bind}
	s, err := stream.New(member.Peer{ID: member.ID{Origin: as, Boot: uint64(time.Now().UnixNano())}}, keys, says, i, stream.Services{Answerer: i}, slog.New(slog.DiscardHandler))
	if err != nil {
		d.t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(d.t.Context(), patience)
	defer cancel()
	return reads(s.Query(ctx, d.cfg.Self))
}

// TestQueryWithoutPins: nodes of one cluster query each other by name. Another cluster is refused, and so is
// a daemon that has another gossip key, or the name of the node itself.
func TestQueryWithoutPins(t *testing.T) {
	t.Parallel()
	first := answering(config(origin("west", "n1")))
	w1, w2 := start(t, first), start(t, answering(config(origin("west", "n2"), first.Bind)))
	east := start(t, answering(config(origin("east", "n1"), first.Bind)))
	for i, d := range []*daemon{w1, w2, east} {
		d.say(i)
	}
	eventually(t, "n2 answers n1", func() bool { return w1.asks("n2") == "west/n2" })
	eventually(t, "n1 answers n2", func() bool { return w2.asks("n1") == "west/n1" })
	eventually(t, "east knows west", func() bool { return east.said(w1.cfg.Self) == 0 })
	for what, as := range map[string]clustermesh.Origin{"another cluster": east.cfg.Self, "the node itself": w1.cfg.Self} {
		if answer := w1.intrudes(as, testKeys, stream.Credentials{}); answer != "" {
			t.Errorf("%s is answered: %q", what, answer)
		}
	}
	if answer := w1.intrudes(w2.cfg.Self, gossipkey.Ring{keyOf(8)}, stream.Credentials{}); answer != "" {
		t.Errorf("another gossip key is answered: %q", answer)
	}
	if answer := w1.intrudes(w2.cfg.Self, testKeys, stream.Credentials{}); answer != "west/n1" {
		t.Errorf("without pins, the gossip key is enough, but the answer is %q", answer)
	}
}

// TestQueryWithPins: only a node that its cluster has stated is answered, and only such a one is believed to
// answer. The gossip key alone, another cluster that is pinned, and a stolen statement are not enough.
func TestQueryWithPins(t *testing.T) {
	t.Parallel()
	pins := pinned("west", "east")
	first := answering(signing(config(origin("west", "n1")), pins))
	w1 := start(t, first)
	w2 := start(t, answering(signing(config(origin("west", "n2"), first.Bind), pins)))
	east := start(t, answering(signing(config(origin("east", "n1"), first.Bind), pins)))
	w1.Publish(placed(w1.cfg.Self, 0, "1"))
	w2.Publish(atNode2(w2.cfg.Self))
	east.Publish(placed(east.cfg.Self, 1, "3"))
	eventually(t, "n2 answers n1", func() bool { return w1.asks("n2") == "west/n2" })
	eventually(t, "n1 answers n2", func() bool { return w2.asks("n1") == "west/n1" })
	eventually(t, "east is believed", func() bool { return w1.said(east.cfg.Self) == 3 })

	proof := func(d *daemon, k *authority.PrivateKey) stream.Credentials {
		c := stream.Credentials{Statement: d.statement}
		if k != nil {
			c.Key = k.Signer()
		}
		return c
	}
	for what, c := range map[string]struct {
		as   clustermesh.Origin
		says stream.Credentials
	}{
		"the gossip key and the name of a node":     {w2.cfg.Self, stream.Credentials{}},
		"the gossip key and the name of a new node": {origin("west", "n9"), stream.Credentials{}},
		"the statement of a node without its key":   {w2.cfg.Self, proof(w2, nil)},
		"another cluster's node as itself":          {east.cfg.Self, proof(east, seeded("key of east/n1"))},
		"another cluster's node as one of this":     {w2.cfg.Self, proof(east, seeded("key of east/n1"))},
	} {
		if answer := w1.intrudes(c.as, testKeys, c.says); answer != "" {
			t.Errorf("%s: answered %q", what, answer)
		}
	}
	if answer := w1.intrudes(w2.cfg.Self, testKeys, proof(w2, seeded("key of west/n2"))); answer != "west/n1" {
		t.Errorf("the node itself is answered %q", answer)
	}

	// A daemon that has the gossip key alone and takes the place of a node answers no query.
	w2.stop()
	fake := answering(config(w2.cfg.Self, first.Bind))
	fake.Bind = w2.cfg.Bind
	start(t, fake)
	eventually(t, "the impostor is seen", func() bool { return w1.Refused()["identity"] > 0 })
	if answer := w1.asks("n2"); answer != "" {
		t.Errorf("an impostor answers: %q", answer)
	}
}

// atNode2 is placed for a second node of west.
func atNode2(o clustermesh.Origin) clustermesh.Content {
	c := placed(o, 0, "2")
	c.Node.Addresses = []netip.Addr{netip.MustParseAddr("192.0.2.77")}
	c.Node.Prefixes = []netip.Prefix{netip.MustParsePrefix("10.0.2.0/24")}
	c.Endpoints[0].Addr = netip.MustParseAddr("10.0.2.7")
	return c
}
