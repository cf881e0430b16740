package node

import (
	"net/netip"
	"strings"
	"testing"
	"time"

	"strait.io/strait/clustermesh/gossip/member"
)

// TestStrangers: a few refusals are no Problem. Many are one, with the first source, which changes only when
// there are ten times as many, and ends when they end.
func TestStrangers(t *testing.T) {
	s, now := NewStrangers(), at
	first, other := netip.MustParseAddr("203.0.113.7"), netip.MustParseAddr("203.0.113.8")
	for n := 1; n <= 1000; n++ {
		from := other
		if n == 1 {
			from = first
		}
		s.Refused(member.NotOurs, from, now)
		ps := s.Problems(now)
		p := ps[string(member.NotOurs)]
		want := ""
		switch {
		case n > 100:
			want = "more than 100 datagrams"
		case n >= abuse:
			want = "more than 10 datagrams"
		}
		if len(ps) != min(len(want), 1) || !strings.Contains(p.Message, want) || want != "" && !strings.Contains(p.Message, first.String()) {
			t.Fatalf("after %d: %v", n, ps)
		}
	}
	if ps := s.Problems(now.Add(ProblemLife + time.Second)); len(ps) > 0 {
		t.Errorf("after a pause: %v", ps)
	}
	later := now.Add(ProblemLife + time.Second)
	if s.Refused(member.NotOurs, other, later); len(s.Problems(later)) > 0 {
		t.Error("one more after a pause is a Problem")
	}
	counts := s.Counts()
	if counts[string(member.NotOurs)] != 1001 || len(counts) != len(member.Refusals) {
		t.Errorf("counts %v", counts)
	}
}
