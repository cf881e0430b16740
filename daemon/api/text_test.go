package api

import (
	"math"
	"net/netip"
	"reflect"
	"testing"
	"time"

	"pgregory.net/rapid"
)

func TestAge(t *testing.T) {
	for d, want := range map[time.Duration]string{
		-time.Hour: "0.0s", 0: "0.0s", 390 * time.Millisecond: "0.3s", 9999 * time.Millisecond: "9.9s", 41 * time.Second: "41s",
		372 * time.Second: "6m12s", time.Hour: "1h00m", 3*time.Hour + 5*time.Minute: "3h05m", 98 * time.Hour: "4d2h",
	} {
		if got := Age(d); got != want {
			t.Errorf("Age(%v) = %q, want %q", d, got, want)
		}
	}
}

func TestPercent(t *testing.T) {
	for share, want := range map[float64]string{0: "–", 1e-9: "<1 %", 0.01: "1 %", 1.0 / 3: "33 %", 0.995: "99 %", 1: "100 %",
		0.99999: "100 %"} {
		if got := Percent(share); got != want {
			t.Errorf("Percent(%v) = %q, want %q", share, got, want)
		}
	}
}

func TestBytes(t *testing.T) {
	for n, want := range map[int64]string{0: "0 B", 1023: "1023 B", 1536: "1.5 KiB", 1288490189: "1.2 GiB", math.MaxInt64: "8192.0 PiB"} {
		if got := Bytes(n); got != want {
			t.Errorf("Bytes(%d) = %q, want %q", n, got, want)
		}
	}
}

func TestSimilarServices(t *testing.T) {
	v := []Service{{Name: "default/serve"}, {Name: "prod/serve"}, {Name: "default/cart"}}
	for name, want := range map[string][]string{"default/srve": {"default/serve"}, "x/serve": {"default/serve", "prod/serve"},
		"default/crat": {"default/cart"}, "other/thing": nil} {
		if got := SimilarServices(v, name); !reflect.DeepEqual(got, want) {
			t.Errorf("%s: %q, want %q", name, got, want)
		}
	}
}

// TestTiersKeepEverything: grouping loses no endpoint and no share, and orders near to far.
func TestTiersKeepEverything(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		var f Frontend
		var total float64
		ready := 0
		for i := range rapid.IntRange(0, 20).Draw(t, "n") {
			e := Endpoint{Addr: netip.AddrPortFrom(netip.AddrFrom4([4]byte{10, 0, 0, byte(i)}), 80),
				Tier:  rapid.SampledFrom(append([]string{"", "odd"}, tierOrder...)).Draw(t, "tier"),
				Ready: rapid.Bool().Draw(t, "ready"), Share: rapid.Float64Range(0, 1).Draw(t, "share")}
			total += e.Share
			if e.Ready {
				ready++
			}
			f.Endpoints = append(f.Endpoints, e)
		}
		var n, gotReady int
		var share float64
		last := -1
		for _, tier := range f.Tiers() {
			n, gotReady, share = n+len(tier.Endpoints), gotReady+tier.Ready, share+tier.Share
			if rank := tierRank(tier.Name); rank < last {
				t.Fatalf("%q is out of order", tier.Name)
			} else {
				last = rank
			}
		}
		if n != len(f.Endpoints) || gotReady != ready || math.Abs(share-total) > 1e-9 {
			t.Fatalf("%d endpoints, %d ready, share %v; want %d, %d, %v", n, gotReady, share, len(f.Endpoints), ready, total)
		}
	})
}

// TestSpellingDistance: Levenshtein's is a metric and bounded by the longer word.
func TestSpellingDistance(t *testing.T) {
	word := rapid.StringMatching(`[abc]{0,6}`)
	rapid.Check(t, func(t *rapid.T) {
		a, b, c := word.Draw(t, "a"), word.Draw(t, "b"), word.Draw(t, "c")
		ab := spellingDistance(a, b)
		if ab != spellingDistance(b, a) || (ab == 0) != (a == b) || ab > max(len(a), len(b)) ||
			ab > spellingDistance(a, c)+spellingDistance(c, b) {
			t.Fatalf("distance of %q and %q is %d", a, b, ab)
		}
	})
}

func TestShort(t *testing.T) {
	for text, want := range map[string]string{"": "", "12345678": "12345678", "123456789": "1234…789", "äöüäöüäöü": "äöüä…äöü"} {
		if got := Short(text, 8); got != want {
			t.Errorf("%q became %q, want %q", text, got, want)
		}
	}
}
