package node

import (
	"fmt"
	"math/rand/v2"
	"net/netip"
	"slices"
	"testing"
	"time"

	"strait.io/strait/clustermesh"
	"strait.io/strait/clustermesh/authority"
	"strait.io/strait/clustermesh/gossip/member"
	"strait.io/strait/clustermesh/gossip/observe"
)

// network runs nodes in virtual time. Members are seen at once, messages arrive at once, and machines that are
// down do not answer.
type network struct {
	t     *testing.T
	now   time.Time
	nodes map[clustermesh.Origin]*Node
	order []clustermesh.Origin
	// sessions are the streams, by receiver and sender.
	sessions map[[2]clustermesh.Origin]*Session
	joined   map[[2]clustermesh.Origin]bool // who has seen whom as a member
}

func newNetwork(t *testing.T, pins authority.Pins, origins ...clustermesh.Origin) *network {
	w := &network{t: t, now: at, nodes: map[clustermesh.Origin]*Node{}, sessions: map[[2]clustermesh.Origin]*Session{}, joined: map[[2]clustermesh.Origin]bool{}}
	for _, o := range origins {
		w.start(o, pins, nil, w.now)
	}
	return w
}

// start adds a node. Clock is what its clock shows until then; it is right from then on.
func (w *network) start(o clustermesh.Origin, pins authority.Pins, lead func() (bool, uint64), clock time.Time) *Node {
	i := len(w.order)
	c := config(o, clock)
	c.Lead = lead
	c.Random = rand.New(rand.NewPCG(uint64(i), 7))
	c.Bind = netip.AddrPortFrom(netip.AddrFrom4([4]byte{192, 0, 2, byte(i + 1)}), 7946)
	c.Advertise = c.Bind
	if pins != nil {
		c = signing(c, pins)
	}
	n := New(c, Saved{}, clock)
	n.SetRunning(true, w.now) // as a real clock, which counts on while it is corrected
	w.nodes[o], w.order = n, append(w.order, o)
	return n
}

// events returns what memberlist tells a node now.
func (w *network) events(o clustermesh.Origin) (out []MemberEvent) {
	for _, p := range w.order {
		key := [2]clustermesh.Origin{o, p}
		if other, up := w.nodes[p]; p != o && up != w.joined[key] {
			w.joined[key] = up
			e := MemberEvent{Alive: up}
			if up {
				e.Member, e.Addr = other.Self(), other.cfg.Bind
			} else {
				e.Member = member.Peer{ID: w.sessions[key].peer.ID}
			}
			out = append(out, e)
		}
	}
	return out
}

// act carries out what a node decided, and what that causes.
func (w *network) act(o clustermesh.Origin) {
	a := w.nodes[o].Take()
	for _, p := range a.Neighbours {
		w.stream(o, p)
	}
	for _, e := range a.Send {
		if s := w.stream(o, e.To); s != nil {
			s.Receive(e.Message, w.now)
			w.act(e.To)
		}
	}
}

// stream returns the stream from one node to another; nil if that is down.
func (w *network) stream(from, to clustermesh.Origin) *Session {
	key := [2]clustermesh.Origin{to, from}
	if w.nodes[to] == nil {
		return nil
	}
	if w.sessions[key] == nil {
		n := w.nodes[from]
		p := Peer{Peer: n.Self(), Statement: n.Statement(w.now)}
		if n.cfg.Authority != nil {
			p.Key = n.cfg.Authority.Node.Public()
		}
		s, err := w.nodes[to].Opened(p, verified(w.nodes[to], p), n.cfg.Bind.Addr().String(), w.now)
		if err != nil {
			w.t.Fatal(err)
		}
		w.sessions[key] = s
	}
	return w.sessions[key]
}

// run lets time pass.
func (w *network) run(d time.Duration) {
	for end := w.now.Add(d); w.now.Before(end); w.now = w.now.Add(200 * time.Millisecond) {
		for _, o := range w.order {
			n := w.nodes[o]
			if n == nil {
				continue
			}
			for _, p := range w.order { // heartbeats
				if s := w.sessions[[2]clustermesh.Origin{o, p}]; s != nil && w.nodes[p] != nil {
					s.Receive(nil, w.now)
				}
			}
			n.Beat(w.events(o), nil, w.now)
			for _, p := range n.Probes(w.now) {
				verdict := observe.Silent
				if w.nodes[p.Node] != nil {
					verdict = observe.Answered
				}
				n.Probed(p.Node, verdict, w.now, w.now)
			}
			w.act(o)
		}
	}
}

// stop ends a machine.
func (w *network) stop(o clustermesh.Origin) {
	delete(w.nodes, o)
	for _, p := range w.order {
		if s := w.sessions[[2]clustermesh.Origin{p, o}]; s != nil && w.nodes[p] != nil {
			s.Close(w.now)
		}
	}
}

// TestNetwork: nodes of two clusters agree on all records, each cluster has one leader, and a machine that dies
// is claimed silent by the others of its cluster. No clock, socket or goroutine is needed for that.
func TestNetwork(t *testing.T) {
	for name, pins := range map[string]authority.Pins{"everyone is believed": nil, "pinned": pinned("west", "east")} {
		t.Run(name, func(t *testing.T) {
			all := []clustermesh.Origin{origin("west", "n1"), origin("west", "n2"), origin("west", "n3"), origin("west", "n4"), origin("east", "n1"), origin("east", "n2")}
			w := newNetwork(t, pins, all...)
			for i, o := range all {
				w.nodes[o].Publish(placed(o, byte(i/4), fmt.Sprint(i)), w.now)
			}
			w.run(10 * time.Second)
			var leaders []clustermesh.Origin
			for _, o := range all {
				s := w.nodes[o].State()
				for i, p := range all {
					if es := s.Records[p].Content.Endpoints; len(es) != 1 || es[0].Pod != fmt.Sprint(i) {
						t.Fatalf("%s has of %s: %+v; %v", o, p, s.Records[p], w.nodes[o].Problems(w.now))
					}
					if c := s.Contacts[p]; p != o && c != clustermesh.Alive {
						t.Errorf("%s sees %s as %s", o, p, c)
					}
				}
				if w.nodes[o].Leader() {
					leaders = append(leaders, o)
				}
			}
			if !slices.Equal(leaders, []clustermesh.Origin{origin("west", "n1"), origin("east", "n1")}) {
				t.Errorf("leaders: %v", leaders)
			}

			w.stop(origin("west", "n1"))
			w.run(time.Minute)
			if !w.nodes[origin("west", "n2")].Leader() {
				t.Error("the next name does not lead")
			}
			for _, o := range all[1:] {
				s := w.nodes[o].State()
				if c := s.Contacts[all[0]]; c != clustermesh.Silent {
					t.Errorf("%s sees the dead machine as %s", o, c)
				}
				if !s.Dead(all[0]) {
					t.Errorf("%s does not know that it is dead", o)
				}
			}
		})
	}
}
