package topology

import (
	"fmt"
	"slices"
	"testing"

	"pgregory.net/rapid"

	"strait.io/strait/clustermesh"
)

// TestSized: up to 20 nodes, live or not, each has a stream to each other one; of more, most have two.
func TestSized(t *testing.T) {
	for _, c := range []struct {
		sizes       []int
		known, want int // the fewest streams that a node has
	}{
		{[]int{10, 10}, 0, 19}, {[]int{10, 10}, 20, 19}, {[]int{10, 11}, 0, 2}, {[]int{10, 6}, 30, 2},
	} {
		all := clusterset(c.sizes...)
		least := len(all)
		for _, o := range all {
			least = min(least, len(Default().Ways(View{Self: o, Members: without(all, o), Known: c.known}).Neighbours()))
		}
		if least != c.want {
			t.Errorf("of %v, %d known: a node has %d streams, want %d", c.sizes, c.known, least, c.want)
		}
	}
}

// TestOlderDaemons: a daemon that knows no relays has a stream to everybody, and is none; what others
// write reaches it, and what it writes it passes on itself.
func TestOlderDaemons(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		all := clusterset(rapid.SliceOfN(rapid.IntRange(1, 40), 1, 4).Draw(t, "sizes")...)
		older := map[clustermesh.Origin]bool{rapid.SampledFrom(all).Draw(t, "older"): true, rapid.SampledFrom(all).Draw(t, "another"): true}
		ways := map[clustermesh.Origin]relayWays{}
		for _, o := range all {
			if older[o] {
				continue
			}
			w := relayWaysOf(View{Self: o, Members: all, Older: older})
			for p := range older {
				if !slices.Contains(w.Neighbours(), p) {
					t.Fatalf("%s has no stream to %s", o, p)
				}
				if slices.Contains(slices.Concat(w.homes, w.mates), p) {
					t.Fatalf("%s is a relay of %s", p, o)
				}
			}
			ways[o] = w
		}
		writer := rapid.SampledFrom(all).Draw(t, "writer")
		if older[writer] {
			return
		}
		records, offers := spread(ways, writer, nil)
		for _, o := range all {
			if o != writer && records[o]+offers[o] == 0 {
				t.Fatalf("%s got nothing of what %s wrote", o, writer)
			}
		}
	})
}

// TestDoubtful: who doubts a home keeps it, has another one besides, and sends its own records to
// both; a relay that doubts the other end of a link has another one.
func TestDoubtful(t *testing.T) {
	all := clusterset(60, 60)
	ways := waysOf(all)
	for _, o := range all {
		for _, p := range ways[o].Neighbours() {
			v := View{Self: o, Members: all, Doubtful: map[clustermesh.Origin]bool{p: true}}
			w := Relays{}.Ways(v)
			got := w.Neighbours()
			if !slices.Contains(got, p) {
				t.Fatalf("%s doubts %s, and ends the stream to it", o, p)
			}
			if sure := relayWaysOf(View{Self: o, Members: without(all, p)}); slices.Contains(ways[o].homes, p) && !sure.relay {
				records := w.Spread(News{Writer: o}, got).Records
				for _, h := range slices.Concat(ways[o].homes, sure.homes) {
					if !slices.Contains(records, h) {
						t.Fatalf("%s doubts a home, and sends records to %v, not to %s", o, records, h)
					}
				}
				if len(got) > 4 {
					t.Fatalf("%s doubts a home, and has streams to %v", o, got)
				}
			}
			to := func(l link) bool { return l.to == p }
			if o.Cluster != "cluster-0" && slices.ContainsFunc(ways[o].links["cluster-0"], to) {
				others := slices.DeleteFunc(slices.Clone(got), func(q clustermesh.Origin) bool { return q == p || q.Cluster != "cluster-0" })
				if len(others) == 0 {
					t.Fatalf("%s doubts %s, and has no other link", o, p)
				}
			}
		}
	}
}

// TestUse: a node that says never is a relay only if all say so, and where some say only, they alone are.
func TestUse(t *testing.T) {
	all := clusterset(50)
	const never, only = clustermesh.RelayNever, clustermesh.RelayOnly
	uses := func(uses ...clustermesh.RelayUse) map[clustermesh.Origin]clustermesh.RelayUse {
		out := map[clustermesh.Origin]clustermesh.RelayUse{}
		for i, u := range uses {
			out[all[i]] = u
		}
		return out
	}
	for _, c := range []struct {
		what   string
		use    map[clustermesh.Origin]clustermesh.RelayUse
		relays int
		not    []clustermesh.Origin
	}{
		{"no node says anything", nil, 3, nil},
		{"most say never", uses(slices.Repeat([]clustermesh.RelayUse{never}, 48)...), 2, all[:48]},
		{"all say never", uses(slices.Repeat([]clustermesh.RelayUse{never}, 50)...), 3, nil},
		{"two say only", uses(only, only), 2, all[2:]},
		{"five say only, and others never", uses(only, only, only, only, only, never), 3, all[5:]},
	} {
		relays := 0
		for _, o := range all {
			w := relayWaysOf(View{Self: o, Members: all, Use: c.use})
			if w.relay {
				relays++
			}
			if w.relay && slices.Contains(c.not, o) {
				t.Errorf("%s: %s is a relay", c.what, o)
			}
			if !w.relay && len(w.homes) != 2 {
				t.Errorf("%s: %s has the homes %v", c.what, o, w.homes)
			}
		}
		if relays != c.relays {
			t.Errorf("%s: there are %d relays", c.what, relays)
		}
	}
}

// TestUnknown: members without a record are no relays, however many there are, unless no other member has one.
func TestUnknown(t *testing.T) {
	real, invented := clusterset(9), map[clustermesh.Origin]bool{}
	all := slices.Clone(real)
	for i := range 500 {
		o := clustermesh.Origin{Cluster: "cluster-0", Node: clustermesh.NodeName(fmt.Sprint("invented-", i))}
		invented[o], all = true, append(all, o)
	}
	for _, o := range real {
		w := relayWaysOf(View{Self: o, Members: all, Unknown: invented})
		for _, p := range slices.Concat(w.homes, w.mates) {
			if invented[p] {
				t.Errorf("%s keeps a stream to %s", o, p)
			}
		}
		if w.relay && len(w.mates) != 8 || !w.relay && len(w.homes) != 2 {
			t.Errorf("%s has the mates %v and the homes %v", o, w.mates, w.homes)
		}
	}
	for o := range real {
		unknown := map[clustermesh.Origin]bool{}
		for _, p := range real {
			unknown[p] = p != real[o]
		}
		v := View{Self: real[o], Members: real, Unknown: unknown}
		if got, want := relayWaysOf(v).neighbours, relayWaysOf(View{Self: real[o], Members: real}).neighbours; !slices.Equal(got, want) {
			t.Errorf("%s has no record of others: %v, want %v", real[o], got, want)
		}
	}
}

// TestGuests: a relay sends what is new to those that keep a stream to it without need, and so does a
// node with what it writes.
func TestGuests(t *testing.T) {
	all := clusterset(40)
	for o, w := range waysOf(all) {
		guest := clustermesh.Origin{Cluster: "elsewhere", Node: "n1"}
		to := w.Spread(News{Writer: o}, append(slices.Clone(w.Neighbours()), guest))
		if !slices.Contains(to.Records, guest) {
			t.Errorf("%s does not send its record to a guest", o)
		}
	}
}

func without(all []clustermesh.Origin, o clustermesh.Origin) []clustermesh.Origin {
	return slices.DeleteFunc(slices.Clone(all), func(p clustermesh.Origin) bool { return p == o })
}
