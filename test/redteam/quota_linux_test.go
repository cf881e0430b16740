package redteam

import (
	"fmt"
	"strings"
	"testing"

	"strait.io/strait/clustermesh"
	"strait.io/strait/clustermesh/authority"
	"strait.io/strait/clustermesh/gossip"
	"strait.io/strait/datapath/socklb/inspect"
	"strait.io/strait/internal/testutil"
)

// TestManyExports: a cluster that was taken over exports 19,000 Services, and then one more that is
// older than all. Others import as many as its quota says, and go on with those that they have.
func TestManyExports(t *testing.T) {
	if !inside(t) {
		return
	}
	w := newWorld(t, map[string]byte{"mallory": mallory})
	root := w.roots["mallory"]
	own := pod(mallory)
	a := w.attack(origin("mallory", "n0"), &gossip.Authority{Root: &root, Node: authority.PrivateKey{66}})
	a.Publish(content("n0", mallory, own))
	var c clustermesh.Content
	for age := range 19_000 {
		c.Exports = append(c.Exports, exported("default", fmt.Sprintf("x%05d", age), age))
	}
	a.lead(c)
	// Frontends are those that east's Service has, the Services of mallory, and the self-test's.
	imported := func(want int) {
		t.Helper()
		testutil.Eventually(t, 3*patience, func() error {
			all, err := inspect.Read(w.west.pinned())
			n := 0
			for _, f := range all {
				if strings.HasPrefix(f.Addr.String(), "241.") {
					n++
				}
			}
			if err == nil && n != want {
				err = fmt.Errorf("west has %d frontends, want %d", n, want)
			}
			return err
		})
	}
	imported(1 + authority.DefaultQuota.Exports)
	w.west.says("STR2328", "cluster mallory", "quota.exports", "it exports 19000 Services, and its quota is 500")
	before := w.west.frontends()
	c.Exports = append(c.Exports, exported("default", "a-first", 1_000_000))
	a.lead(c)
	w.west.says("STR2328", "it exports 19001 Services")
	if after := w.west.frontends(); after != before {
		t.Error("one more export took the place of another")
	}
	w.west.balances(pod(eastNumber))
}
