package redteam

import (
	"fmt"
	"net/netip"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	"strait.io/strait/clustermesh/authority"
	"strait.io/strait/clustermesh/gossip"
	"strait.io/strait/internal/testutil"
)

// TestWithdrawnStatement: a machine that was taken over stopped asking for statements, and its
// cluster has given one of its ranges of pods to another node. It goes on showing the statement
// from before that. After two minutes, no daemon believes it any more, nor does one that starts
// only then. When the owner has the machine back, it is believed again.
func TestWithdrawnStatement(t *testing.T) {
	if !inside(t) {
		return
	}
	w, f := newWorldOfThree(t)
	node, err := os.ReadFile(w.east.path("manifests/n3.yaml"))
	w.must(err)
	withPods := func(text string) string {
		return strings.Replace(string(node), "podCIDRs: [10.2.3.0/24]", "podCIDRs: ["+text+"]", 1)
	}
	serves := func(at netip.Addr) string {
		return strings.Replace(manifestServe(at), "nodeName: n1", "nodeName: n3", 1)
	}
	own, taken, kept := netip.MustParseAddr("10.2.3.7"), netip.MustParseAddr("10.2.4.7"), netip.MustParseAddr("10.2.4.8")
	both := withPods("10.2.3.0/24, 10.2.4.0/24")
	w.east.write("manifests/n3.yaml", both)
	f.write("manifests/node.yaml", both)
	f.write("manifests/serve.yaml", serves(taken))
	w.west.balances(pod(eastNumber), taken)
	b := f.stated(ranges(2))
	f.stop()

	text, err := os.ReadFile(f.path("state/node.key"))
	w.must(err)
	key, err := authority.ParsePrivate(string(text))
	w.must(err)
	stated, err := authority.OpenStatement(b, w.pins)
	w.must(err)
	old, err := stated.Signed(time.Now().Add(-90 * time.Minute)).Sign(rootOf("east"))
	w.must(err)
	lie := content("n3", eastNumber, kept)
	lie.Node.Addresses = []netip.Addr{machine(followerNumber)}
	lie.Node.Prefixes = []netip.Prefix{netip.MustParsePrefix("10.2.3.0/24"), netip.MustParsePrefix("10.2.4.0/24")}
	thief := w.attack(origin("east", "n3"), &gossip.Authority{Node: key}, w.sealed(w.forge(origin("east", "n3"), time.Minute, lie), key, old))
	w.west.balances(pod(eastNumber), kept)

	w.east.write("manifests/n3.yaml", string(node))
	w.east.write("manifests/node.yaml", strings.Replace(manifestNode(eastNumber, ""), "[10.2.1.0/24]", "[10.2.1.0/24, 10.2.4.0/24]", 1))
	w.east.says("STR2329", "node east/n3", "has not requested another one")
	testutil.Eventually(t, authority.WithdrawAfter+patience, func() error {
		got, err := w.west.backends()
		if err == nil && !slices.Equal(got, []netip.Addr{pod(eastNumber)}) {
			err = fmt.Errorf("west balances over %v", got)
		}
		return err
	})
	end := w.west.never(kept)
	for _, m := range []*member{w.west, w.east} {
		m.says("STR2329", "cluster east", "withdrawn", "the record of east/n3")
	}
	end()
	w.west.stop()
	w.must(os.Remove(w.west.path("state/replica.cbor")))
	w.west.start()
	w.west.says("STR2329", "cluster east", "withdrawn")
	w.west.balances(pod(eastNumber))

	thief.end()
	f.write("manifests/node.yaml", string(node))
	f.write("manifests/serve.yaml", serves(own))
	f.start()
	w.west.balances(pod(eastNumber), own)
	w.east.saysNot("has not requested another one")
}
