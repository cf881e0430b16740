package node

import (
	"strings"
	"testing"

	"strait.io/strait/clustermesh"
	"strait.io/strait/clustermesh/replica"
)

// TestLongUIDs: a record with a UID that is too long, or cannot be printed, is refused.
func TestLongUIDs(t *testing.T) {
	n := New(config(origin("west", "n1"), at), Saved{}, at)
	for _, uid := range []string{strings.Repeat("x", 65), "\x1b[2J"} {
		e, err := replica.NewEntry(clustermesh.Record{Origin: origin("east", "n1"), UID: uid, Stamp: clustermesh.Stamp{Epoch: 1, Version: 1}})
		if err != nil {
			t.Fatal(err)
		}
		if _, p, ok := n.admit(origin("east", "n1"), e); ok || !strings.Contains(p.Message, "UID") {
			t.Errorf("%q is admitted: %v", uid, p)
		}
	}
}

// TestRefusedIsUnknown: what was saved without proof is not taken for absent once there are pins.
func TestRefusedIsUnknown(t *testing.T) {
	unsigned := []replica.Entry{entry(t, origin("east", "n1"), placed(origin("east", "n1"), 1, "1"), at)}
	for _, withPins := range []bool{false, true} {
		c := config(origin("west", "n1"), at)
		if withPins {
			c = signing(c, pinned("west", "east"))
		}
		n := New(c, Saved{Records: unsigned}, at)
		if n.loaded == withPins || n.State().Records.Len() != 1 == !withPins {
			t.Errorf("pins: %v; %d records, complete: %v", withPins, n.State().Records.Len(), n.loaded)
		}
	}
}
