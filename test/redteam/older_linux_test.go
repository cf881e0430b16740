package redteam

import (
	"net/netip"
	"os"
	"strings"
	"testing"
	"time"

	"strait.io/strait/clustermesh/authority"
	"strait.io/strait/clustermesh/gossip"
)

// TestOlderStatement: a machine had two ranges of pods, and its cluster has taken one away. An
// attacker who copied its disk before brings back the statement of then, with a new record that the
// machine's key signed, from a daemon that proves to be the machine's. No daemon believes it, over
// a restart too, and each reports it.
func TestOlderStatement(t *testing.T) {
	if !inside(t) {
		return
	}
	w, f := newWorldOfThree(t)
	node, err := os.ReadFile(w.east.path("manifests/n3.yaml"))
	w.must(err)
	has := func(pods string, at netip.Addr) {
		t.Helper()
		text := strings.Replace(string(node), "podCIDRs: [10.2.3.0/24]", "podCIDRs: ["+pods+"]", 1)
		w.east.write("manifests/n3.yaml", text)
		f.write("manifests/node.yaml", text)
		f.write("manifests/serve.yaml", strings.Replace(manifestServe(at), "nodeName: n1", "nodeName: n3", 1))
		w.west.balances(pod(eastNumber), at)
	}
	taken, left := netip.MustParseAddr("10.2.4.7"), netip.MustParseAddr("10.2.3.8")
	has("10.2.3.0/24, 10.2.4.0/24", taken)
	wide := f.stated(ranges(2))
	text, err := os.ReadFile(f.path("state/node.key"))
	w.must(err)
	key, err := authority.ParsePrivate(string(text))
	w.must(err)
	has("10.2.3.0/24", netip.MustParseAddr("10.2.3.7"))
	f.stated(ranges(1))
	has("10.2.3.0/24", left) // what it says now is under the new statement

	end := w.west.never(taken)
	lie := content("n3", eastNumber, taken)
	lie.Node.Addresses = []netip.Addr{machine(followerNumber)}
	lie.Node.Prefixes = []netip.Prefix{netip.MustParsePrefix("10.2.3.0/24"), netip.MustParsePrefix("10.2.4.0/24")}
	f.stop()
	w.attack(origin("east", "n3"), &gossip.Authority{Node: key}, w.sealed(w.forge(origin("east", "n3"), time.Minute, lie), key, wide))
	says := func() {
		t.Helper()
		w.west.says("STR2315", "cluster east", "its cluster has stated something else of it since", "the record of east/n3, received from east/n3", "revoke its key")
	}
	says()
	w.west.stop()
	w.west.start()
	says()
	w.west.balances(pod(eastNumber), left)
	w.east.says("STR2315")
	end()
}
