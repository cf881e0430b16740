package netfilter

import (
	"errors"
	"math/rand/v2"
	"net/netip"
	"slices"
	"testing"

	"go4.org/netipx"
	"golang.org/x/sys/unix"
	"pgregory.net/rapid"

	"strait.io/strait/datapath"
)

func prefixes(ss ...string) (out []netip.Prefix) {
	for _, s := range ss {
		out = append(out, netip.MustParsePrefix(s))
	}
	return out
}

func TestSpans(t *testing.T) {
	for name, c := range map[string]struct {
		prefixes []netip.Prefix
		want     []string
	}{
		"one":                         {prefixes("10.1.1.0/24"), []string{"10.1.1.0-10.1.1.255"}},
		"not masked":                  {prefixes("10.1.1.7/24"), []string{"10.1.1.0-10.1.1.255"}},
		"apart, in any order":         {prefixes("10.1.3.0/24", "10.1.1.0/24"), []string{"10.1.1.0-10.1.1.255", "10.1.3.0-10.1.3.255"}},
		"touching":                    {prefixes("10.1.1.0/24", "10.1.2.0/24"), []string{"10.1.1.0-10.1.2.255"}},
		"nested":                      {prefixes("10.1.0.0/16", "10.1.1.0/24", "10.1.0.0/32"), []string{"10.1.0.0-10.1.255.255"}},
		"the same start":              {prefixes("10.1.0.0/24", "10.1.0.0/16"), []string{"10.1.0.0-10.1.255.255"}},
		"to the end":                  {prefixes("255.255.255.255/32", "255.255.255.0/24"), []string{"255.255.255.0-255.255.255.255"}},
		"everything, and inside it":   {prefixes("0.0.0.0/0", "10.1.1.0/24"), []string{"0.0.0.0-255.255.255.255"}},
		"the families do not meet":    {prefixes("::/128", "255.255.255.255/32"), []string{"255.255.255.255-255.255.255.255", "::-::"}},
		"pods' own addresses, IPv6":   {prefixes("fd00::2/128", "fd00::1/128", "fd00::5/128"), []string{"fd00::1-fd00::2", "fd00::5-fd00::5"}},
		"a prefix of IPv6 to its end": {prefixes("ff00::/8"), []string{"ff00::-ffff:ffff:ffff:ffff:ffff:ffff:ffff:ffff"}},
	} {
		var got []string
		for _, s := range ranges(c.prefixes) {
			got = append(got, s.String())
		}
		if !slices.Equal(got, c.want) {
			t.Errorf("%s: %q, want %q", name, got, c.want)
		}
	}
}

// An address is in a range exactly if it is in a prefix, ranges have gaps between them, and the elements that the
// kernel holds, in whatever order it gives them back, mean the same ranges.
func TestSpansProperties(t *testing.T) {
	gen := rapid.Custom(func(t *rapid.T) netip.Prefix {
		bits := rapid.IntRange(24, 32).Draw(t, "bits")
		a := netip.AddrFrom4([4]byte{255, 255, rapid.ByteRange(253, 255).Draw(t, "third"), rapid.Byte().Draw(t, "fourth")})
		return netip.PrefixFrom(a, bits)
	})
	rapid.Check(t, func(t *rapid.T) {
		ps := rapid.SliceOf(gen).Draw(t, "prefixes")
		got := ranges(ps)
		for i := range 3 * 256 {
			a := netip.AddrFrom4([4]byte{255, 255, byte(253 + i/256), byte(i)})
			in := slices.ContainsFunc(got, func(r netipx.IPRange) bool { return r.Contains(a) })
			if want := slices.ContainsFunc(ps, func(p netip.Prefix) bool { return p.Contains(a) }); in != want {
				t.Fatalf("%s in %v: %v, want %v", a, got, in, want)
			}
		}
		for i := range max(len(got)-1, 0) {
			if !got[i].To().Next().Less(got[i+1].From()) {
				t.Fatalf("no gap in %v", got)
			}
		}
		es := elements(families[0], got)
		rand.Shuffle(len(es), func(i, j int) { es[i], es[j] = es[j], es[i] })
		if back := toRanges(es); !slices.Equal(back, got) {
			t.Fatalf("%v came back as %v", got, back)
		}
	})
}

// Whatever changes the table changes the content, or it would not be written.
func TestContentDiffers(t *testing.T) {
	base := datapath.Sources{Prefixes: prefixes("10.1.1.0/24"), Node: netip.MustParseAddr("10.1.1.1")}
	c := contentOf("strait0", base)
	if !c.equal(contentOf("strait0", base)) {
		t.Error("equal content differs")
	}
	for name, d := range map[string]content{
		"device":    contentOf("strait1", base),
		"node":      contentOf("strait0", datapath.Sources{Prefixes: base.Prefixes, Node: netip.MustParseAddr("10.1.1.2")}),
		"no node":   contentOf("strait0", datapath.Sources{Prefixes: base.Prefixes}),
		"port":      contentOf("strait0", datapath.Sources{Prefixes: base.Prefixes, Node: base.Node, Port: 7946}),
		"prefix":    contentOf("strait0", datapath.Sources{Prefixes: prefixes("10.1.1.0/25"), Node: base.Node}),
		"Services":  contentOf("strait0", datapath.Sources{Prefixes: base.Prefixes, Node: base.Node, ClusterIPs: prefixes("10.96.0.0/16")}),
		"not based": {rules: c.rules, pods: c.pods},
		"a rule":    {based: true, rules: c.rules[1:], pods: c.pods},
	} {
		if c.equal(d) {
			t.Errorf("%s: no difference", name)
		}
	}
}

func TestUnsupported(t *testing.T) {
	for _, err := range []error{unsupported(unix.EPROTONOSUPPORT), unsupported(unix.EOPNOTSUPP), unsupported(unix.ENOENT, unix.ENOENT)} {
		if !errors.Is(err, errors.ErrUnsupported) {
			t.Errorf("%v does not say that the kernel lacks it", err)
		}
	}
	for _, err := range []error{unsupported(nil), unsupported(unix.ENOENT), unsupported(unix.EPERM), unsupported(unix.EINVAL)} {
		if errors.Is(err, errors.ErrUnsupported) {
			t.Errorf("%v blames the kernel", err)
		}
	}
}
