package authority

import (
	"net/netip"
	"slices"
	"testing"
	"time"

	"strait.io/strait/clustermesh"
	"strait.io/strait/internal/key"
)

func TestExceeds(t *testing.T) {
	full := Statement{
		Key: seeded(3).Public(), WireGuard: key.Public{1}, Locality: clustermesh.Locality{Zone: "a"},
		Addresses: []netip.Addr{netip.MustParseAddr("192.0.2.1")},
		Prefixes:  []netip.Prefix{netip.MustParsePrefix("10.2.1.0/24"), netip.MustParsePrefix("10.2.9.7/32")},
	}
	for name, c := range map[string]struct {
		change        func(*Statement)
		lost, lasting bool
	}{
		"nothing":      {func(*Statement) {}, false, false},
		"another time": {func(s *Statement) { *s = s.Signed(time.Now()) }, false, false},
		"more": {func(s *Statement) {
			s.Prefixes = append(slices.Clone(s.Prefixes), netip.MustParsePrefix("10.2.3.0/24"))
		}, false, false},
		"a wider prefix": {func(s *Statement) { s.Prefixes = []netip.Prefix{netip.MustParsePrefix("10.2.0.0/16")} }, false, false},
		"a prefix":       {func(s *Statement) { s.Prefixes = s.Prefixes[1:] }, true, true},
		"half a prefix":  {func(s *Statement) { s.Prefixes = []netip.Prefix{netip.MustParsePrefix("10.2.1.0/25"), s.Prefixes[1]} }, true, true},
		"a pod":          {func(s *Statement) { s.Prefixes = s.Prefixes[:1] }, true, false},
		"an address":     {func(s *Statement) { s.Addresses = nil }, true, true},
		"its zone":       {func(s *Statement) { s.Locality.Zone = "b" }, true, true},
		"its key":        {func(s *Statement) { s.Key = seeded(4).Public() }, true, true},
		"its tunnels":    {func(s *Statement) { s.WireGuard = key.Public{} }, true, true},
	} {
		now := full
		if c.change(&now); full.Exceeds(now) != c.lost || full.Lasting().Exceeds(now) != c.lasting {
			t.Errorf("%s: exceeds %v, and apart from pods %v", name, full.Exceeds(now), full.Lasting().Exceeds(now))
		}
	}
}

func TestWithdraw(t *testing.T) {
	now := time.Date(2026, 5, 1, 12, 0, 0, 0, time.UTC)
	at := func(ago time.Duration) uint64 { return uint64(now.Add(-ago).UnixNano()) }
	shown := func(ago time.Duration) Statement { return Statement{Node: "n1"}.Signed(now.Add(-ago)) }
	entry := func(below uint64, in time.Duration) clustermesh.Withdrawal {
		return clustermesh.Withdrawal{Node: "n1", Below: below, From: now.Add(in).Unix()}
	}
	list := func(ws ...clustermesh.Withdrawal) []clustermesh.Withdrawal { return ws }
	old, day := entry(at(24*time.Hour), -time.Hour), 24*time.Hour
	asked := at(90*time.Minute) + 1 // the first serial after a statement that should have been renewed
	for _, c := range []struct {
		name       string
		have, want []clustermesh.Withdrawal
		standing   Standing
	}{
		{"all is right", nil, nil, Standing{Shown: shown(0)}},
		{"it certifies too much, and its node does not ask", nil, list(entry(asked, WithdrawAfter)), Standing{Shown: shown(90 * time.Minute), Exceeds: true}},
		{"it certifies too much, and its node will ask", nil, list(entry(at(15*time.Minute)+1, WithdrawAfter+45*time.Minute)), Standing{Shown: shown(15 * time.Minute), Exceeds: true}},
		{"its signer's clock is wrong", nil, nil, Standing{Shown: shown(-time.Hour), Exceeds: true}},
		{"it lost something before", nil, list(entry(at(day), WithdrawAfter)), Standing{Shown: shown(0), Replaced: at(day)}},
		{"that is known", list(old), list(old), Standing{Shown: shown(0), Replaced: old.Below}},
		{"it certifies too much again", list(old), list(old, entry(asked, WithdrawAfter)), Standing{Shown: shown(90 * time.Minute), Exceeds: true}},
		{"one at a time", list(old, entry(7, time.Second)), list(old, entry(7, time.Second)), Standing{Shown: shown(90 * time.Minute), Exceeds: true}},
		{"it has not asked", list(entry(asked, 1)), list(entry(asked, 1)), Standing{Shown: shown(90 * time.Minute), Exceeds: true}},
		{"it has asked", list(entry(asked, time.Minute)), list(entry(asked, time.Minute)), Standing{Shown: shown(0)}},
		{"its Node was corrected in time", list(old, entry(asked, time.Minute)), list(old), Standing{Shown: shown(90 * time.Minute)}},
		{"and too late", list(old, entry(asked, 0)), list(entry(asked, 0)), Standing{Shown: shown(90 * time.Minute)}},
		{"only the last counts", list(old, entry(asked, -time.Second)), list(entry(asked, -time.Second)), Standing{Shown: shown(0)}},
	} {
		before := slices.Clone(c.have)
		if got := Withdraw(c.have, c.standing, now, WithdrawAfter); !slices.Equal(got, c.want) {
			t.Errorf("%s: %v, want %v", c.name, got, c.want)
		}
		if !slices.Equal(before, c.have) {
			t.Errorf("%s: it changed its argument", c.name)
		}
	}
}

func TestBelow(t *testing.T) {
	now := time.Date(2026, 5, 1, 12, 0, 0, 0, time.UTC)
	in := func(d time.Duration) int64 { return now.Add(d).Unix() }
	list := []clustermesh.Withdrawal{
		{Node: "n1", Below: 5, From: in(-time.Hour)}, {Node: "n1", Below: 9, From: in(time.Minute)},
		{Node: "n2", Below: uint64(now.Add(time.Hour).UnixNano()), From: in(-time.Hour)},
		{Node: "n3", Below: 4, From: in(0)},
	}
	for _, c := range []struct {
		node       clustermesh.NodeName
		now, later uint64
	}{{"n0", 0, 0}, {"n1", 5, 9}, {"n2", 0, 0}, {"n3", 4, 4}, {"n4", 0, 0}} {
		if got, later := Below(list, c.node, now, false), Below(list, c.node, now, true); got != c.now || later != c.later {
			t.Errorf("of %s, %d counts, and %d is announced", c.node, got, later)
		}
	}
}
