package redteam

import (
	"testing"
	"time"

	"strait.io/strait/clustermesh"
	"strait.io/strait/clustermesh/authority"
	"strait.io/strait/clustermesh/gossip"
	"strait.io/strait/internal/l4"
)

// TestBackdatedExport: by the KEP the oldest export decides the type of a Service. A cluster that was
// taken over claims that its own is older than all others, and headless, so that no cluster would have an
// address for the Service.
func TestBackdatedExport(t *testing.T) {
	if !inside(t) {
		return
	}
	w := newWorld(t, map[string]byte{"mallory": mallory})
	frontends := w.west.frontends()
	root, key := w.roots["mallory"], authority.PrivateKey{66}
	a := w.attack(origin("mallory", "n0"), &gossip.Authority{Root: &root, Node: key})
	a.Publish(content("n0", mallory))
	honest := clustermesh.Content{Nodes: []clustermesh.NodeName{"n0"}}
	a.lead(honest)
	w.west.hears("mallory", 0)
	w.east.hears("mallory", 0)

	serve := clustermesh.ServiceName{Namespace: "default", Name: "serve"}
	backdated := honest
	backdated.Exports = []clustermesh.Export{{
		Service: serve, Type: clustermesh.Headless, Created: -1, Ports: []clustermesh.ServicePort{{Name: "http", Port: 80, Proto: l4.TCP}},
	}}
	a.lead(backdated)
	holds := func(when string) {
		t.Helper()
		for _, m := range []*member{w.west, w.east} {
			m.says("STR2207", "default/serve of cluster mallory", "the export of east is the oldest")
			m.balances(pod(eastNumber))
		}
		if now := w.west.frontends(); now != frontends {
			t.Errorf("%s: the frontends were %s and are %s", when, frontends, now)
		}
	}
	holds("backdated")

	// A daemon that was not there to see it believes its leader.
	w.west.stop()
	w.west.start()
	w.west.hears("mallory", 1)
	holds("after a restart")

	// Nor does it help to take the export back and to offer it again.
	a.lead(honest)
	w.west.saysNot("STR2207")
	time.Sleep(time.Second)
	a.lead(backdated)
	holds("offered again")
}
