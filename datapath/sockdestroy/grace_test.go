package sockdestroy

import (
	"slices"
	"strings"
	"testing"
	"time"

	"strait.io/strait/datapath"
)

// A step of a story is what a frontend has after some time, and which endpoints keep their sockets.
type step struct {
	after time.Duration
	// has lists endpoints: "a" gets new connections, "a?" is not ready, "a+" is ready but idle.
	has, keeps string
	next       time.Duration
}

func TestGrace(t *testing.T) {
	const s = time.Second
	for _, tc := range []struct {
		name  string
		grace time.Duration
		story []step
	}{
		{"a blip", 10 * s, []step{{0, "a b", "a b", 0}, {s, "a? b", "a b", 10 * s}, {s, "a b", "a b", 0}}},
		{"not ready for long", 10 * s, []step{
			{0, "a b", "a b", 0}, {s, "a? b", "a b", 10 * s}, {4 * s, "a? b", "a b", 6 * s}, {6 * s, "a? b", "b", 0}, {s, "a? b", "b", 0},
		}},
		{"each blip has its own period", 10 * s, []step{
			{0, "a?", "a", 10 * s}, {9 * s, "a", "a", 0}, {s, "a?", "a", 10 * s}, {9 * s, "a?", "a", s}, {s, "a?", "", 0},
		}},
		{"gone", 10 * s, []step{{0, "a b", "a b", 0}, {s, "b", "b", 0}}},
		{"gone while it is not ready", 10 * s, []step{{0, "a? b", "a b", 10 * s}, {s, "b", "b", 0}}},
		{"a nearer one is ready", 10 * s, []step{{0, "a+ b", "a b", 0}, {1000 * s, "a+ b", "a b", 0}}},
		{"not ready after a nearer one took over", 10 * s, []step{
			{0, "a+ b", "a b", 0}, {1000 * s, "a? b", "a b", 10 * s}, {10 * s, "a? b", "b", 0},
		}},
		{"ready again, but a nearer one took over", 10 * s, []step{{0, "a? b", "a b", 10 * s}, {s, "a+ b", "a b", 0}}},
		{"two, one after the other", 10 * s, []step{
			{0, "a? b c", "a b c", 10 * s}, {4 * s, "a? b? c", "a b c", 6 * s}, {6 * s, "a? b? c", "b c", 4 * s}, {4 * s, "a? b? c", "c", 0},
		}},
		{"the last one", 10 * s, []step{{0, "a?", "a", 10 * s}, {10 * s, "a?", "", 0}}},
		{"no grace", 0, []step{{0, "a b", "a b", 0}, {s, "a? b", "b", 0}, {s, "a+ b", "a b", 0}}},
	} {
		t.Run(tc.name, func(t *testing.T) {
			g, now := NewGrace(tc.grace), time.Unix(1000, 0)
			for i, st := range tc.story {
				now = now.Add(st.after)
				in := []datapath.Frontend{frontend("10.96.0.9:53/TCP", "10.1.0.9:53"), story(st.has), frontend("10.96.0.2:53/UDP", "10.1.0.9:53")}
				before := slices.Clone(in[1].Backends)
				keep, next := g.Keep(in, now)
				if got := names(keep[1]); got != st.keeps || next != st.next {
					t.Errorf("step %d: keeps %q, next in %v; want %q, %v", i, got, next, st.keeps, st.next)
				}
				if !slices.Equal(in[1].Backends, before) || !keep[0].Equal(in[0]) || !keep[2].Equal(in[2]) {
					t.Errorf("step %d: what was given is changed, or other frontends are", i)
				}
			}
		})
	}
}

// Frontends do not share the time of an endpoint.
func TestGracePerFrontend(t *testing.T) {
	g, now := NewGrace(10*time.Second), time.Unix(1000, 0)
	one, two := story("a?"), story("a")
	two.Addr.Port++
	g.Keep([]datapath.Frontend{one, two}, now)
	two.Backends, two.Idle = one.Backends, one.Idle
	keep, next := g.Keep([]datapath.Frontend{one, two}, now.Add(10*time.Second))
	if names(keep[0]) != "" || names(keep[1]) != "a" || next != 10*time.Second {
		t.Errorf("keeps %q and %q, next in %v", names(keep[0]), names(keep[1]), next)
	}
}

// story makes a frontend of words like those of a step.
func story(has string) datapath.Frontend {
	f := frontend("10.96.0.1:53/UDP")
	for word := range strings.FieldsSeq(has) {
		b := datapath.Backend{IP: at("10.1.0.0:53").Addr(), Port: uint16(word[0]), Weight: 1}
		if len(word) == 1 {
			f.Backends = append(f.Backends, b)
		} else {
			f.Idle = append(f.Idle, datapath.Idle{Addr: b.AddrPort(), Unready: word[1] == '?'})
		}
	}
	return f
}

func names(f datapath.Frontend) string {
	var out []string
	for _, b := range f.Backends {
		out = append(out, string(rune(b.Port)))
	}
	return strings.Join(out, " ")
}
