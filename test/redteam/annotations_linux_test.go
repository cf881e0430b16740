package redteam

import (
	"fmt"
	"net/netip"
	"os"
	"slices"
	"strings"
	"testing"

	"strait.io/strait/clustermesh/authority"
	"strait.io/strait/internal/testutil"
)

// taken is a machine without the root that was taken over, or whose kubelet's credential was: its Node says
// what the attacker likes, where the signer reads too.
type taken struct {
	*member
	key string
}

// newWorldOfTaken is newWorldOfThree with n3 of east taken over.
func newWorldOfTaken(t *testing.T) (*world, taken) {
	t.Helper()
	w, f := newWorldOfThree(t)
	node, err := os.ReadFile(w.east.path("manifests/n3.yaml"))
	w.must(err)
	return w, taken{f, string(node)}
}

// claims gives its Node an annotation and more addresses, and lets it share a pod of default/serve.
func (m taken) claims(annotation string, pod netip.Addr, addresses ...netip.Addr) {
	m.w.Helper()
	text := m.key
	if annotation != "" {
		text = strings.Replace(text, "annotations: {", fmt.Sprintf("annotations: {strait.io/prefixes: %q, ", annotation), 1)
	}
	for _, a := range addresses {
		text = strings.Replace(text, "}]}", fmt.Sprintf("}, {type: InternalIP, address: %q}]}", a), 1)
	}
	m.w.east.write("manifests/n3.yaml", text)
	m.write("manifests/node.yaml", text)
	m.write("manifests/serve.yaml", strings.Replace(manifestServe(pod), "nodeName: n1", "nodeName: n3", 1))
}

// stated waits until the machine's daemon has such a statement on disk, and returns it. Others can believe what
// a statement says before it is there.
func (m *member) stated(ok func(authority.Statement) bool) (signed []byte) {
	m.w.Helper()
	testutil.Eventually(m.w, patience, func() (err error) {
		if signed, err = os.ReadFile(m.path("state/statement.cbor")); err != nil {
			return err
		}
		s, err := authority.OpenStatement(signed, m.w.pins)
		if err == nil && !ok(s) {
			err = fmt.Errorf("it states %v %v", s.Addresses, s.Prefixes)
		}
		return err
	})
	return signed
}

// ranges is for stated: a statement about so many ranges of pods.
func ranges(n int) func(authority.Statement) bool {
	return func(s authority.Statement) bool { return len(s.Prefixes) == n }
}

// TestNodeTakesPods: a node whose Node is annotated with the pods of another one of its cluster, with
// parts of them, or with all of the cluster, gets none of them. Both machines say so, and all is well
// once the annotation is right.
func TestNodeTakesPods(t *testing.T) {
	if !inside(t) {
		return
	}
	w, f := newWorldOfTaken(t)
	own, theirs := netip.MustParseAddr("10.2.3.7"), netip.MustParseAddr("10.2.1.99")
	end := w.west.never(theirs)
	for _, claimed := range []string{"10.2.3.0/24,10.2.1.0/25,10.2.1.128/25", "10.2.1.99/32", "10.2.0.0/16", "10.2.1.0/24"} {
		f.claims(claimed, theirs)
		for _, m := range []*member{w.east, f.member} {
			m.says("STR2320", "node east/n3", "prefixes", "node east/n1, which keeps it")
		}
		w.west.balances(pod(eastNumber))
		f.stated(func(s authority.Statement) bool {
			return !slices.ContainsFunc(s.Prefixes, netip.MustParsePrefix("10.2.1.0/24").Overlaps)
		})
		f.claims("", own)
		w.west.balances(pod(eastNumber), own)
	}
	f.saysNothing()
	w.east.saysNot("STR2320")
	end()
}

// TestLeaderTakesPods: the machine that has the root states of itself only what it would state of others.
func TestLeaderTakesPods(t *testing.T) {
	if !inside(t) {
		return
	}
	w, f := newWorldOfTaken(t)
	shared, theirs := netip.MustParseAddr("10.2.3.7"), netip.MustParseAddr("10.2.3.99")
	end := w.west.never(theirs)
	w.east.write("manifests/node.yaml", manifestNode(eastNumber, "10.2.1.0/24,10.2.3.64/26"))
	w.east.write("manifests/serve.yaml", manifestServe(theirs))
	w.east.says("STR2320", "node east/n1", "10.2.3.64/26", "node east/n3, which keeps it")
	w.west.balances(shared)
	w.east.write("manifests/node.yaml", manifestNode(eastNumber, ""))
	w.east.write("manifests/serve.yaml", manifestServe(pod(eastNumber)))
	w.west.balances(pod(eastNumber), shared)
	w.east.saysNothing()
	end()

	// Both are annotated with one range at once. One of them has it, and keeps it.
	free := "10.2.9.0/24"
	first, second := netip.MustParseAddr("10.2.9.7"), netip.MustParseAddr("10.2.9.8")
	w.east.write("manifests/node.yaml", manifestNode(eastNumber, free))
	w.east.write("manifests/serve.yaml", manifestServe(first))
	f.claims(free, second)
	testutil.Eventually(t, patience, func() error {
		got, err := w.west.backends()
		if err == nil && !slices.Equal(got, []netip.Addr{first}) && !slices.Equal(got, []netip.Addr{second}) {
			err = fmt.Errorf("west balances over %v", got)
		}
		return err
	})
	w.east.says("STR2320", free, "node east/n1", "node east/n3")
}

// TestNodeTakesAddresses: a node whose Node has the addresses of others takes none from them: neither from a
// node of its own cluster, nor from machines and pods of another. Once it tells the truth, all is as before.
func TestNodeTakesAddresses(t *testing.T) {
	if !inside(t) {
		return
	}
	w, f := newWorldOfTaken(t)
	own := netip.MustParseAddr("10.2.3.7")
	// East has no pods of its own, so it balances over what it believes of west.
	none := strings.Replace(manifestServe(pod(eastNumber)), "endpoints: [{addresses: ["+pod(eastNumber).String()+"], nodeName: n1}]", "endpoints: []", 1)
	w.east.write("manifests/serve.yaml", none)
	f.write("manifests/serve.yaml", none)
	w.west.write("manifests/serve.yaml", manifestServe(pod(westNumber)))
	w.east.balances(pod(westNumber))

	end := w.east.always(pod(westNumber))
	for _, addr := range []netip.Addr{machine(eastNumber), pod(westNumber), machine(westNumber), netip.MustParseAddr("10.2.1.200")} {
		f.claims("", own, addr)
		f.write("manifests/serve.yaml", none)
		w.east.says("node east/n3", "addresses", addr.String())
		f.says("node east/n3", "addresses", addr.String())
		f.stated(func(s authority.Statement) bool {
			return slices.Equal(s.Addresses, []netip.Addr{machine(followerNumber)})
		})
	}
	f.claims("", own)
	w.west.balances(pod(westNumber))
	end()
	w.west.write("manifests/serve.yaml", none)
	w.west.balances(own)
}
