package redteam

import (
	"fmt"
	"net/netip"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"strait.io/strait/internal/testutil"
)

// TestInventedNames: a holder of the gossip key names thousands of clusters that do not exist, with UIDs of
// all lengths, by memberlist and on streams. A daemon keeps none of it.
func TestInventedNames(t *testing.T) {
	if !inside(t) {
		return
	}
	w := newWorld(t, nil)
	w.west.hears("east", 1)
	rss := w.west.rss()
	to := gossipOf(westNumber)
	k := w.keyholder(origin("mallory", "x"), "")
	const names, streams = 3000, 300
	for n := range names {
		k.throws(to, isAt(fmt.Sprintf("c%d/n1/1", n), netip.AddrPortFrom(stranger(n), port), strings.Repeat("u", n%600), 1))
	}
	for n := range streams {
		for _, size := range []int{8000, 64, 36} {
			_, _ = w.keyholder(origin(fmt.Sprintf("s%d", n), "n1"), strings.Repeat("u", size)).Ask(t.Context(), to)
		}
	}
	grown := int64(w.west.rss()-rss) >> 20
	t.Logf("RSS grew by %d MiB", grown)
	if grown > 64 {
		t.Errorf("the daemon grew by %d MiB", grown)
	}
	w.east.write("manifests/serve.yaml", manifestServe(moved))
	w.west.balances(moved)
	testutil.Eventually(t, patience, func() error { // it saves what it knows each second
		var size int64
		for _, name := range []string{"clusters.json", "distances.json", "replica.cbor"} {
			if info, err := os.Stat(filepath.Join(w.west.path("state"), name)); err == nil {
				size += info.Size()
			}
		}
		if size == 0 || size > 256<<10 {
			return fmt.Errorf("what it saved has %d bytes", size)
		}
		return nil
	})
}
