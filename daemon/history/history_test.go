package history

import (
	"fmt"
	"math/rand/v2"
	"net/netip"
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"strait.io/strait/clustermesh"
	"strait.io/strait/daemon/api"
	"strait.io/strait/daemon/plan"
)

// seenOf is all that a plan says, worked out and written down.
func seenOf(r *plan.Result) string {
	out := fmt.Sprintf("%+v\n%+v\n%+v\n%+v\n", r.Desired, r.Allocations, r.Problems, r.Dead)
	for _, i := range r.Imports {
		out += fmt.Sprintf("%+v %+v %+v\n", *i.Import, i.IPs, i.Frontends())
	}
	return out
}

// step changes one thing that plans are made from, or nothing but the time.
func (w *world) step(rt *rapid.T) {
	o := origin(rapid.SampledFrom([]string{"a", "b", "c"}).Draw(rt, "cluster"), rapid.SampledFrom([]string{"n1", "n2", "n3"}).Draw(rt, "node"))
	s := &w.in.State
	switch rapid.IntRange(0, 12).Draw(rt, "what") {
	case 0:
		s.Records = s.Records.Without(o)
	case 1, 2:
		s.Contacts = s.Contacts.With(o, rapid.SampledFrom([]clustermesh.Contact{clustermesh.Held, clustermesh.Silent, clustermesh.Quiet, clustermesh.Alive}).Draw(rt, "contact"))
	case 3:
		s.Contacts = s.Contacts.Without(o)
	case 4:
		w.edit(o, func(c *clustermesh.Content) { c.Silent = []clustermesh.Silence{{Origin: origin("b", "n1"), Epoch: 9}} })
	case 5:
		w.edit(origin(string(o.Cluster), ""), func(c *clustermesh.Content) {
			c.Drain = &clustermesh.Drain{Since: w.in.Now.Unix(), Over: int64(rapid.IntRange(0, 20).Draw(rt, "over"))}
		})
	case 6:
		w.edit(origin(string(o.Cluster), ""), func(c *clustermesh.Content) {
			c.Exports, c.Drain = c.Exports[:rapid.IntRange(0, len(c.Exports)).Draw(rt, "exports")], nil
		})
	case 7:
		w.in.Faults = map[clustermesh.Origin]plan.Fault{o: {Why: "carries nothing", Impaired: rapid.Bool().Draw(rt, "impaired")}}
	case 8:
		w.in.Faults, w.in.Far = nil, map[clustermesh.ClusterName]uint32{o.Cluster: rapid.Uint32Range(0, 3).Draw(rt, "far")}
	case 9:
		s.Proven = s.Proven.With(o, netip.MustParseAddrPort("172.16.0.9:7946"))
		w.in.Learning = !w.in.Learning
	case 10: // two nodes claim one prefix and key: who had them first keeps them
		other := w.in.State.Records.Get(origin("b", "n2")).Content.Node
		if s.Records.Get(o).Content.Node != nil && other != nil {
			w.edit(o, func(c *clustermesh.Content) { c.Node.Prefixes, c.Node.PublicKey = other.Prefixes, other.PublicKey })
		}
	default:
		w.edit(o, func(c *clustermesh.Content) {
			for i := range c.Endpoints {
				c.Endpoints[i].Ready = rapid.Bool().Draw(rt, "ready")
				c.Endpoints[i].Serving = c.Endpoints[i].Ready
			}
		})
	}
}

// TestReplay: whatever happens, the plan that a Replay makes of each noted turn is the one that was
// made then, also after the daemon started again, and where the file ends and a new one begins with
// the whole.
func TestReplay(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		w := newWorld("abc", 3, 2)
		check := func(err error) {
			if err != nil {
				rt.Fatal(err)
			}
		}
		replay := &Replay{}
		read, turns := 0, 0
		follow := func() {
			for ; read < len(w.frames); read++ {
				complete, err := replay.Frame(w.frames[read])
				check(err)
				if !complete || turns == len(w.turns) {
					continue
				}
				was := w.turns[turns]
				if r := replay.Plan(); seenOf(&r) != seenOf(was.Result) {
					rt.Fatalf("turn %d was planned\n%s\nand is planned again\n%s", turns, seenOf(was.Result), seenOf(&r))
				}
				if now := replay.Turn(); !now.Time().Equal(was.Time()) || now.Start != was.Start {
					rt.Fatalf("turn %d is of %s %q, was of %s %q", turns, now.Time(), now.Start, was.Time(), was.Start)
				}
				turns++
			}
		}
		for range rapid.IntRange(1, 25).Draw(rt, "turns") {
			switch rapid.IntRange(0, 9).Draw(rt, "event") {
			case 0: // the daemon starts again, and goes on where it was
				w.past, w.in.Config.Mesh = plan.Past{}, rapid.Bool().Draw(rt, "mesh")
				if w.turns != nil {
					w.rec = Continue(replay)
				}
			case 1: // a new file, which a reader of the last one goes on with
				whole, err := w.rec.Whole()
				check(err)
				w.frames = append(w.frames, whole...)
			default:
				w.step(rt)
			}
			_, err := w.turn(rapid.SampledFrom([]int{0, 1, 3, 60, -5}).Draw(rt, "seconds"))
			check(err)
			follow()
		}
	})
}

// once notes a change after a first turn, and returns what people read of it.
func once(t *testing.T, clusters string, nodes, pods int, change func(*world)) string {
	t.Helper()
	w := newWorld(clusters, nodes, pods)
	if _, err := w.turn(0); err != nil {
		t.Fatal(err)
	}
	before := w.turns[0]
	change(w)
	item, differs := ItemOf(before, w.plan(1))
	if !differs {
		return "nothing"
	}
	return textOf(item)
}

func textOf(i api.HistoryItem) string {
	var out []string
	for _, c := range i.Causes {
		out = append(out, fmt.Sprintf("%s: %s %s", c.Kind, c.Subject, c.Text))
	}
	for _, e := range i.Effects {
		line := fmt.Sprintf("%s: %s => %s", e.Service, e.From, e.To)
		for _, c := range e.Clusters {
			line += fmt.Sprintf(" %s+%d-%d", c.Cluster, c.Added, c.Withdrawn)
		}
		if e.Why != "" {
			line += " (" + e.Why + ")"
		}
		out = append(out, line)
	}
	if i.Peers != 0 || i.Routes != 0 {
		out = append(out, fmt.Sprintf("peers%+d routes%+d", i.Peers, i.Routes))
	}
	return strings.Join(out, "\n")
}

func TestItems(t *testing.T) {
	silence := []clustermesh.Silence{{Origin: origin("b", "n1"), Epoch: 9}}
	for _, tc := range []struct {
		name   string
		change func(*world)
		want   string
	}{
		{"nothing", func(*world) {}, "nothing"},
		{"the node's own pod is not ready any more", func(w *world) {
			w.edit(origin("a", "n1"), func(c *clustermesh.Content) { c.Endpoints[0].Ready, c.Endpoints[0].Serving = false, false })
		}, `endpoint: shop/cart 1 endpoint stopped being ready in a
shop/cart: node 100 % (a) => region 100 % (a) a+2-1 (pod is not ready)`},
		{"a machine of another cluster is dead", func(w *world) {
			w.edit(origin("b", "n2"), func(c *clustermesh.Content) { c.Silent = silence })
			w.edit(origin("b", "n3"), func(c *clustermesh.Content) { c.Silent = silence })
			w.in.State.Contacts = w.in.State.Contacts.With(origin("b", "n1"), clustermesh.Silent)
		}, `death: node b/n1 is dead
contact: node b/n1 alive → silent
record: node b/n2 claims 1 node silent
record: node b/n3 claims 1 node silent`},
		{"many nodes are held", func(w *world) {
			for n := 1; n <= 3; n++ {
				w.in.State.Contacts = w.in.State.Contacts.With(origin("b", fmt.Sprintf("n%d", n)), clustermesh.Held)
			}
			w.in.State.Contacts = w.in.State.Contacts.With(origin("b", "n4"), clustermesh.Held)
		}, `contact: node b/n1 alive → held
contact: node b/n2 alive → held
contact: node b/n3 alive → held`},
		{"an export is gone", func(w *world) {
			for _, c := range []string{"a", "b"} {
				w.edit(origin(c, ""), func(c *clustermesh.Content) { c.Exports = nil })
			}
		}, `export: cluster a exports shop/cart no more
export: cluster b exports shop/cart no more
shop/cart: node 100 % (a) =>  a+0-1`},
		{"a drain", func(w *world) {
			w.edit(origin("a", ""), func(c *clustermesh.Content) { c.Drain = &clustermesh.Drain{} })
		}, `drain: cluster a is drained
shop/cart: node 100 % (a) => clusterset 100 % (b) a+0-1 b+3-0 (cluster a is drained)`},
		{"a tunnel and this node", func(w *world) {
			w.in.Faults, w.in.Learning = map[clustermesh.Origin]plan.Fault{origin("b", "n1"): {Why: "carries nothing"}}, true
		}, `tunnel: tunnel to b/n1 carries nothing
config: this node does not know all of the clusterset any more`},
		{"a node left", func(w *world) { w.in.State.Records = w.in.State.Records.Without(origin("b", "n3")) },
			`member: node b/n3 left: its record is gone
endpoint: shop/cart 1 endpoint went in b
peers-1 routes-1`},
	} {
		if got := once(t, "ab", 3, 1, tc.change); got != tc.want {
			t.Errorf("%s:\n%s\nwant\n%s", tc.name, got, tc.want)
		}
	}
}

// TestBounded: an item does not grow with what happened.
func TestBounded(t *testing.T) {
	w := newWorld("ab", 2, 1)
	problems := func(t *Turn, n int) *Turn {
		for i := range n {
			t.Problems = append(t.Problems, clustermesh.Problem{Code: "STR1", Object: fmt.Sprint(i), Message: strings.Repeat("x", 5000)})
		}
		return t
	}
	before := w.plan(0)
	item, _ := ItemOf(before, problems(w.plan(1), 1000))
	if len(item.Causes) != maxCauses || item.MoreCauses != 1000-maxCauses || len(item.Causes[0].Text) > 300 {
		t.Errorf("%d causes and %d more, the first of %d bytes", len(item.Causes), item.MoreCauses, len(item.Causes[0].Text))
	}
}

// large is a clusterset of 10,000 nodes in 20 clusters, each with 10 pods, of 500 services in each cluster.
func large() *world {
	w := &world{in: plan.Inputs{Self: self, Config: setup, Now: noon}, rec: &Recorder{}}
	return w.populate("abcdefghijklmnopqrst", 500, 10, func(n int) clustermesh.ServiceName {
		return clustermesh.ServiceName{Namespace: "shop", Name: fmt.Sprintf("service-%d", n)}
	})
}

// BenchmarkNote notes one pod that changes its readiness among 100,000 on 10,000 nodes.
func BenchmarkNote(b *testing.B) {
	w := large()
	if _, err := w.turn(0); err != nil {
		b.Fatal(err)
	}
	first := 0
	for _, f := range w.frames {
		first += len(f)
	}
	random := rand.New(rand.NewPCG(1, 2))
	bytes := 0
	for b.Loop() {
		b.StopTimer()
		o := origin(string(rune('a'+random.IntN(20))), fmt.Sprintf("n%d", 1+random.IntN(500)))
		w.edit(o, func(c *clustermesh.Content) {
			e := &c.Endpoints[random.IntN(10)]
			e.Ready = !e.Ready
			e.Serving = e.Ready
		})
		t := w.plan(1)
		b.StartTimer()
		frames, err := w.rec.Note(t, 0)
		if err != nil || len(frames) != 1 {
			b.Fatal(len(frames), err)
		}
		bytes += len(frames[0]) + 8
	}
	b.ReportMetric(float64(bytes)/float64(b.N), "bytes/turn")
	b.ReportMetric(float64(first), "bytes/whole")
}

// FuzzReplay: whatever the frames, a Replay ends with an error or a turn, and takes no more memory
// than they are worth.
func FuzzReplay(f *testing.F) {
	w := newWorld("ab", 2, 1)
	w.turn(0)
	w.edit(origin("a", "n1"), func(c *clustermesh.Content) { c.Endpoints = nil })
	w.turn(1)
	for _, frame := range w.frames {
		f.Add(frame, w.frames[len(w.frames)-1])
	}
	f.Add([]byte{kindFirst, 0xff, 0xff, 0xff, 0x7f}, []byte{kindNext})
	text, _ := encMode.Marshal(message{Whole: true, Records: []recordChange{{Origin: origin("a", "n1"), Body: []byte{0xa0}}}})
	f.Add(text, text)
	f.Fuzz(func(t *testing.T, one, two []byte) {
		r := &Replay{}
		for _, frame := range [][]byte{one, two} {
			complete, err := r.Frame(frame)
			if err != nil {
				break
			}
			if complete {
				r.Turn()
				r.Item()
			}
		}
		// As a message too: few inputs decompress to one.
		var m message
		r = &Replay{bodies: map[clustermesh.Origin][]byte{}}
		if decMode.Unmarshal(one, &m) == nil && r.change(m) == nil {
			m.itemOf()
			r.Turn()
		}
	})
}

// TestPatch: a change and its inverse.
func TestPatch(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		text := rapid.SliceOfN(rapid.ByteMax(2), 0, 12)
		a, b := text.Draw(rt, "before"), text.Draw(rt, "after")
		head, tail := common(a, b)
		c := recordChange{Head: uint32(head), Tail: uint32(tail), Body: b[head : len(b)-tail]}
		if got, err := c.patch(a); err != nil || !slices.Equal(got, b) {
			rt.Fatalf("%v → %v: %+v makes %v, %v", a, b, c, got, err)
		}
	})
}
