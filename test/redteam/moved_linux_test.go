package redteam

import (
	"fmt"
	"net"
	"net/netip"
	"strings"
	"testing"
	"time"

	"strait.io/strait/daemon/api"
)

// rumours are what an attacker can say of a member by memberlist. Two of them would move it to an address
// of the attacker's, were memberlist believed. After the last one, memberlist takes no other.
var rumours = []struct {
	what   string
	spread func(k *keyholder, name string, trap netip.AddrPort, n int)
}{
	{"it left, and is there now", func(k *keyholder, name string, trap netip.AddrPort, n int) {
		k.throws(gossipOf(westNumber), isDead(name, name, 2*n))
		k.throws(gossipOf(westNumber), isAt(name, trap, "", 2*n+1))
	}},
	{"so says a daemon's state", func(k *keyholder, name string, trap netip.AddrPort, n int) {
		k.tells(gossipOf(westNumber), members(name, trap, 1_000_000+2*n, stateLeft, stateAlive))
	}},
	{"it is suspected, and gone", func(k *keyholder, name string, _ netip.AddrPort, n int) {
		for from := range 4 {
			k.throws(gossipOf(westNumber), isSuspected(name, fmt.Sprintf("west/n%d/1", from), 2_000_000+n))
		}
		k.throws(gossipOf(westNumber), isDead(name, "west/n9/1", 2_000_000+n))
	}},
	{"a later life of it is there", func(k *keyholder, name string, trap netip.AddrPort, n int) {
		k.throws(gossipOf(westNumber), isAt(name[:len(name)-1]+"zz", trap, "", n))
	}},
	{"it is gone for good", func(k *keyholder, name string, _ netip.AddrPort, _ int) {
		k.throws(gossipOf(westNumber), isDead(name, "west/n9/1", last))
		k.throws(gossipOf(westNumber), isSuspected(name, "west/n9/1", last))
	}},
}

// TestMemberMoved: a holder of the gossip key claims by memberlist that a node left and is somewhere else
// now, or gone, in every way there is. It stays alive, what is said still reaches it, and clients notice
// nothing. When its daemon is gone, such words do not make it alive; when it is back, it is found.
func TestMemberMoved(t *testing.T) {
	if !inside(t) {
		return
	}
	w := newWorld(t, nil)
	serve(w, pod(eastNumber))
	calls := w.outsider("call", w.west.frontend(80), w.west.cgroup)
	w.east.hears("west", 0)
	w.west.hears("east", 1)
	trap := netip.AddrPortFrom(stranger(21), port)
	listenSilently(w, trap)
	k := w.keyholder(origin("mallory", "x"), "")
	name := k.life(gossipOf(eastNumber))
	held := w.west.always(pod(eastNumber))
	exports := 0
	changes := func() {
		t.Helper()
		exports++
		more := fmt.Sprint("more", exports)
		w.west.write("manifests/"+more+".yaml", strings.ReplaceAll(manifestServe(pod(westNumber)), "serve", more))
		w.east.hears("west", exports)
	}
	for _, r := range rumours {
		t.Log(r.what)
		end := during(50*time.Millisecond, func(n int) { r.spread(k, name, trap, n+1) })
		for began := time.Now(); time.Since(began) < 2*time.Second; time.Sleep(20 * time.Millisecond) {
			if s, err := w.west.status(); err == nil && !w.west.alive("east") {
				t.Fatalf("the node is not alive: %+v", s.Clusters)
			}
		}
		changes()
		end()
	}

	all := during(50*time.Millisecond, func(n int) {
		for _, r := range rumours {
			r.spread(k, name, trap, n+100)
		}
	})
	w.east.stop()
	w.west.shows("east", "gone", func(c api.Cluster) bool { return c.Alive == 0 })
	for began := time.Now(); time.Since(began) < 2*time.Second; time.Sleep(20 * time.Millisecond) {
		if w.west.alive("east") {
			t.Fatal("rumours make a daemon alive that is gone")
		}
	}
	w.east.start()
	changes()
	w.east.write("manifests/other.yaml", strings.ReplaceAll(manifestServe(pod(eastNumber)), "serve", "other"))
	w.west.hears("east", 2)
	all()
	held()
	if n := w.west.refusedAs("message"); n > 0 {
		t.Errorf("%d messages were refused for their form, so this shows less than it should", n)
	}
	calls.stop()
	if made, failed := strings.Count(calls.out.String(), "answered\n"), strings.Count(calls.out.String(), "failed"); failed > 0 || made == 0 {
		t.Errorf("%d calls failed, %d were answered", failed, made)
	}
}

// listenSilently accepts connections at an address, and says nothing.
func listenSilently(w *world, at netip.AddrPort) {
	w.Helper()
	l, err := net.Listen("tcp", at.String())
	w.must(err)
	w.Cleanup(func() { l.Close() })
	go func() {
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			defer c.Close()
		}
	}()
}
