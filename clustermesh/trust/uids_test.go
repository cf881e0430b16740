package trust

import (
	"slices"
	"strings"
	"testing"

	"strait.io/strait/clustermesh"
)

// TestMixedUIDs: two clusters with one id and one root are named, and so is a pin that is out of date.
func TestMixedUIDs(t *testing.T) {
	record := func(o clustermesh.Origin, uid string) clustermesh.Record {
		return clustermesh.Record{Origin: o, UID: uid}
	}
	records := func(uids ...string) clustermesh.ByOrigin[clustermesh.Record] {
		out := clustermesh.NewByOrigin(map[clustermesh.Origin]clustermesh.Record{node("stranger", "n1"): record(node("stranger", "n1"), "x")})
		for i, uid := range uids {
			o := node("east", "n"+string(rune('1'+i)))
			out = out.With(o, record(o, uid))
		}
		return out
	}
	free, fixed := pinned("east"), pinned("east")
	pin := fixed["east"]
	pin.UID = "uid-1"
	fixed["east"] = pin
	for name, c := range map[string]struct {
		pins bool
		uids []string
		says []string
	}{
		"one":                 {false, []string{"uid-1", "uid-1", ""}, nil},
		"two":                 {false, []string{"uid-1", "uid-2"}, []string{"uid-1 (the record of east/n1)", "uid-2 (the record of east/n2)"}},
		"as pinned":           {true, []string{"uid-1", "uid-1"}, nil},
		"one is not pinned":   {true, []string{"uid-0", "uid-1"}, []string{"uid-0 (the record of east/n1)", "uid-1 (the record of east/n2)"}},
		"the pin is outdated": {true, []string{"uid-2"}, []string{"UID uid-1, which is pinned", "uid-2 (the record of east/n1)"}},
	} {
		pins := free
		if c.pins {
			pins = fixed
		}
		out := new(uids).update(pins, 0, records(c.uids...))
		if len(out) != min(1, len(c.says)) {
			t.Fatalf("%s: %v", name, out)
		}
		if slices.ContainsFunc(c.says, func(s string) bool { return !strings.Contains(out[0].Message, s) }) {
			t.Errorf("%s: %v", name, out)
		}
	}
}
