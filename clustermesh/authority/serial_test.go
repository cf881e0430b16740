package authority

import (
	"math"
	"net/netip"
	"testing"
	"time"
)

func TestAbove(t *testing.T) {
	now := time.Date(2026, 5, 1, 12, 0, 0, 0, time.UTC)
	at := func(d time.Duration) uint64 { return uint64(now.Add(d).UnixNano()) }
	for _, c := range []struct {
		name        string
		known, want uint64
	}{
		{"nothing is known", 0, at(0)},
		{"an earlier one", at(-time.Hour), at(0)},
		{"one of the same moment", at(0), at(0) + 1},
		{"one of a signer whose clock is ahead", at(time.Hour), at(time.Hour) + 1},
		{"one of a signer whose clock is wrong", at(365 * 24 * time.Hour), at(0)},
		{"the largest", math.MaxUint64, at(0)},
	} {
		if got := (Statement{}).Signed(now).Above(c.known).Serial; got != c.want {
			t.Errorf("%s: serial %d, want %d", c.name, got, c.want)
		}
	}
	if got := (Statement{Serial: math.MaxUint64 - 1}).Above(math.MaxUint64).Serial; got != math.MaxUint64-1 {
		t.Errorf("it wraps around to %d", got)
	}
}

func TestOlder(t *testing.T) {
	now := time.Date(2026, 5, 1, 12, 0, 0, 0, time.UTC)
	root, other := seeded(1).Public(), seeded(2).Public()
	wide := []netip.Prefix{netip.MustParsePrefix("10.2.1.0/24"), netip.MustParsePrefix("10.2.9.0/24")}
	signed := func(root PublicKey, ago time.Duration, prefixes ...netip.Prefix) Statement {
		s := Statement{Cluster: "east", Node: "n1", Key: seeded(3).Public(), Prefixes: prefixes}.Signed(now.Add(-ago))
		s.Root = root
		return s
	}
	narrow := signed(root, time.Hour, wide[:1]...)
	for _, c := range []struct {
		name  string
		s     Statement
		known Statement
		want  bool
	}{
		{"what it certified before", signed(root, 2*time.Hour, wide...), narrow, true},
		{"what is certified since", signed(root, 0, wide...), narrow, false},
		{"the same, certified before", signed(root, 2*time.Hour, wide[:1]...), narrow, false},
		{"the same moment", signed(root, time.Hour, wide...), narrow, false},
		{"another root's", signed(other, 2*time.Hour, wide...), narrow, false},
		{"nothing is known", signed(root, 2*time.Hour, wide...), Statement{}, false},
		{"known from a clock that is a bit ahead", signed(root, 0, wide...), signed(root, -MaxAhead, wide[:1]...), true},
		{"known from a clock that is wrong", signed(root, 0, wide...), signed(root, -MaxAhead-time.Second, wide[:1]...), false},
	} {
		if got := c.s.Older(c.known, now); got != c.want {
			t.Errorf("%s: older %v, want %v", c.name, got, c.want)
		}
	}
}
