package clustermesh

import (
	"fmt"
	"net/netip"
	"slices"
	"testing"

	"pgregory.net/rapid"
)

func TestAround(t *testing.T) {
	for want, texts := range map[string][]string{
		"[]":                              {},
		"[10.96.0.1/32]":                  {"10.96.0.1"},
		"[10.96.0.0/28]":                  {"10.96.0.10", "10.96.0.1"},
		"[10.96.0.0/16]":                  {"10.96.0.1", "10.96.200.3", "10.96.3.4"},
		"[10.96.0.0/28 10.111.7.0/28]":    {"10.96.0.1", "10.111.7.8", "10.96.0.10", "10.111.7.1"},
		"[10.96.0.1/32 fd00:96::/124]":    {"fd00:96::1", "10.96.0.1", "fd00:96::a"},
		"[fd00:96::1/128 fd00:97::1/128]": {"fd00:96::1", "fd00:97::1"},
	} {
		var ips []netip.Addr
		for _, s := range texts {
			ips = append(ips, netip.MustParseAddr(s))
		}
		if got := fmt.Sprint(Around(ips)); got != want {
			t.Errorf("around %v: %s, want %s", texts, got, want)
		}
	}
}

// The ranges hold all addresses, do not overlap, and are the same in any order.
func TestAroundHoldsAll(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		ips := rapid.SliceOf(rapid.Custom(func(t *rapid.T) netip.Addr {
			return netip.AddrFrom4([4]byte{10, byte(rapid.IntRange(96, 98).Draw(t, "b")), rapid.Byte().Draw(t, "c"), rapid.Byte().Draw(t, "d")})
		})).Draw(t, "ips")
		got := Around(ips)
		for _, ip := range ips {
			if !slices.ContainsFunc(got, func(p netip.Prefix) bool { return p.Contains(ip) && p == p.Masked() }) {
				t.Fatalf("%v does not hold %s", got, ip)
			}
		}
		for i := range got {
			if slices.ContainsFunc(got[i+1:], got[i].Overlaps) {
				t.Fatalf("%v overlap", got)
			}
		}
		slices.Reverse(ips)
		if again := Around(ips); !slices.Equal(again, got) {
			t.Fatalf("%v, and backwards %v", got, again)
		}
	})
}

// TestEntries: the entries of a cluster count, dead or alive, without those that overlap the reader's own.
func TestEntries(t *testing.T) {
	s := State{Records: ByOrigin[Record]{}}
	for o, text := range map[Origin]string{
		{"east", "n1"}: "10.96.0.0/16", {"east", "n2"}: "10.97.0.7/32", {"west", "n1"}: "10.98.0.0/16", {"east", ""}: "10.99.0.0/16",
	} {
		r := Record{Origin: o, Content: Content{Node: &Node{Name: o.Node, ClusterIPs: []netip.Prefix{netip.MustParsePrefix(text)}}}}
		s.Records = s.Records.With(o, r)
	}
	if got := fmt.Sprint(s.Entries("east", nil)); got != "[10.96.0.0/16 10.97.0.7/32]" {
		t.Errorf("entries %s", got)
	}
	if got := fmt.Sprint(s.Entries("east", []netip.Prefix{netip.MustParsePrefix("10.96.7.0/24")})); got != "[10.97.0.7/32]" {
		t.Errorf("beside own ClusterIPs: %s", got)
	}
}
