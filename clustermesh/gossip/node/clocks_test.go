package node

import (
	"fmt"
	"testing"
	"time"

	"strait.io/strait/clustermesh"
)

// TestClocks: of several clocks, the one that differs from most is named; of two, both are.
func TestClocks(t *testing.T) {
	origin := func(i int) clustermesh.Origin {
		return clustermesh.Origin{Cluster: "c", Node: clustermesh.NodeName(fmt.Sprintf("n%d", i))}
	}
	for _, c := range []struct {
		name string
		by   []time.Duration
		own  time.Duration
	}{
		{"none", nil, 0},
		{"all agree", []time.Duration{0, time.Second, -clockTolerance}, 0},
		{"one of one", []time.Duration{time.Hour}, 0},
		{"one of three", []time.Duration{0, time.Hour, 0}, 0},
		{"half of them", []time.Duration{0, time.Hour, 0, time.Hour}, 0},
		{"all others", []time.Duration{time.Hour, time.Hour}, -time.Hour},
		{"most others", []time.Duration{-time.Hour, 0, -time.Hour}, time.Hour},
		{"long ago", append(make([]time.Duration, fewClocks), time.Hour, time.Hour, time.Hour, time.Hour, time.Hour), -time.Hour},
	} {
		var all clocks
		for i, by := range c.by {
			all.note(reading{origin(i), by})
		}
		if own, of, n := all.own(); own != c.own || n > fewClocks || of > n {
			t.Errorf("%s: %s by %d of %d, want %s", c.name, own, of, n, c.own)
		}
	}
	var same clocks
	for range 20 {
		same.note(reading{origin(1), time.Hour})
	}
	if own, _, n := same.own(); own != 0 || n != 1 {
		t.Errorf("one machine that is asked often: %s by %d", own, n)
	}
}

// TestConfirm: a clock that differs is named only when another one was asked too, if there is another.
func TestConfirm(t *testing.T) {
	a, b := clustermesh.Origin{Cluster: "c", Node: "a"}, clustermesh.Origin{Cluster: "c", Node: "b"}
	var two, many clocks
	differs := func(c *clocks, o clustermesh.Origin) bool {
		c.note(reading{o, time.Hour})
		return c.confirm(o)
	}
	for times, want := range []bool{false, true} {
		if differs(&two, a) != want {
			t.Errorf("the only other machine, asked %d times before: want %t", times, want)
		}
	}
	many.note(reading{b, 0})
	for range 2 {
		if differs(&many, a) {
			t.Error("named before another one was asked")
		}
	}
	if many.note(reading{b, 0}); !differs(&many, a) {
		t.Error("not named, though another one was asked")
	}
	for i := range 2 * maxClocks {
		differs(&many, clustermesh.Origin{Cluster: "d", Node: clustermesh.NodeName(fmt.Sprint(i))})
	}
	if len(many.differ) > maxClocks {
		t.Errorf("%d are noted", len(many.differ))
	}
}
