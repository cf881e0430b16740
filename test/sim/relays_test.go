package sim

import (
	"testing"
	"time"

	"strait.io/strait/clustermesh"
	"strait.io/strait/clustermesh/topology"
)

// relays returns the relays of a cluster.
func (w *Network) relays(cluster int) (out []*Machine) {
	var members []clustermesh.Origin
	for _, m := range w.of(cluster) {
		members = append(members, m.Self)
	}
	for _, m := range w.of(cluster) {
		if (topology.Relays{}).Roles(m.Self, members).Relay {
			out = append(out, m)
		}
	}
	return out
}

// TestRelaysDie: what changes right after a relay of each cluster has died reaches all others half a
// second later, though none has noticed it; and if all relays of a cluster die at once, all is whole
// again after eight seconds. A relay that only withholds what it should pass on is never noticed, and
// costs no more.
func TestRelaysDie(t *testing.T) {
	one := func(w *Network, do func(*Machine)) {
		for c := range w.cfg.Clusters {
			do(w.relays(c)[0])
		}
	}
	for _, c := range []struct {
		what       string
		wrong      func(w *Network)
		most, last time.Duration
	}{
		{"one relay of each cluster is dead", func(w *Network) { one(w, (*Machine).TurnOff) }, 500 * time.Millisecond, 4 * time.Second},
		{"one relay of each cluster withholds all", func(w *Network) {
			one(w, func(m *Machine) { m.Withholds = true })
		}, 500 * time.Millisecond, 4 * time.Second},
		{"all relays of a cluster are dead", func(w *Network) {
			for _, m := range w.relays(1) {
				m.TurnOff()
			}
		}, 8 * time.Second, 8 * time.Second},
	} {
		if slow > 1 && c.most > time.Second {
			continue
		}
		w := New(Config{Seed: *seed, Clusters: 4, Nodes: 45, Rooted: 45, Endpoints: 10, Pinned: true, Diskless: true})
		w.Resume(w.Machines)
		w.Run(5 * time.Second)
		c.wrong(w)
		var all []*Track
		for range 20 {
			if m := w.any(); m.Runs() && !m.Withholds {
				all = append(all, w.Change(m))
			}
		}
		whole := func() bool { return w.TimesOf(all).Missing == 0 }
		if !w.Until(whole, 10*time.Millisecond, 20*time.Second) {
			t.Errorf("%s: %d copies have not arrived", c.what, w.TimesOf(all).Missing)
			continue
		}
		times := w.TimesOf(all)
		t.Logf("%s: half after %s, 99 %% after %s, all after %s", c.what, times.Half, times.Most, times.Max)
		if times.Most > c.most || times.Max > c.last {
			t.Errorf("%s: 99 %% after %s, all after %s", c.what, times.Most, times.Max)
		}
	}
}
