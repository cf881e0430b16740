package sim

import (
	"maps"
	"slices"
	"time"

	"strait.io/strait/clustermesh/gossip/node"
)

// faults are what can happen, each with its weight.
var faults = []struct {
	weight int
	happen func(w *Network, m *Machine)
}{
	{6, func(_ *Network, m *Machine) {
		if m.Runs() {
			m.Publish()
		}
	}},
	{3, func(w *Network, m *Machine) { w.restart(m, m.Stop) }},
	{2, func(w *Network, m *Machine) { w.restart(m, m.TurnOff) }},
	{1, func(w *Network, m *Machine) {
		w.restart(m, func() {
			m.TurnOff()
			m.Forget()
		})
	}},
	{1, func(w *Network, m *Machine) {
		w.restart(m, func() {
			m.TurnOff()
			m.SetBack()
		})
	}},
	{1, func(w *Network, m *Machine) { w.leave(m) }},
	{2, func(w *Network, m *Machine) { w.isolate(m) }},
	{2, func(w *Network, _ *Machine) { w.split() }},
	{2, func(w *Network, m *Machine) { w.Cut(m, w.any()) }},
	{2, func(w *Network, m *Machine) { w.breakStreams(m) }},
	{2, func(w *Network, _ *Machine) { w.Heal() }},
	{1, func(w *Network, _ *Machine) { w.Loss = w.rng.Float64() * 0.3 }},
	{1, func(w *Network, _ *Machine) { w.Jitter = w.Draw(500 * time.Millisecond) }},
	{1, func(w *Network, m *Machine) { m.bits = float64(int(20_000) << w.rng.IntN(10)) }},
	{1, func(w *Network, m *Machine) { m.slow = 1 << w.rng.IntN(10) }},
}

// Misfortune has something go wrong now, at random.
func (w *Network) Misfortune() {
	sum := 0
	for _, f := range faults {
		sum += f.weight
	}
	draw := w.rng.IntN(sum)
	for _, f := range faults {
		if draw -= f.weight; draw < 0 {
			f.happen(w, w.any())
			return
		}
	}
}

// Recover ends all faults. Clocks stay as they are, and what left does not come back.
func (w *Network) Recover() {
	w.Heal()
	w.Loss, w.Jitter = w.cfg.Loss, 0
	for _, m := range w.Machines {
		m.bits, m.slow = bandwidth, 1
		w.start(m)
	}
}

// start starts a machine that has not left, with two others as seeds, of which one is the first of all: otherwise the
// clusterset could start as two that do not know of each other.
func (w *Network) start(m *Machine) {
	if !m.left {
		m.Start(w.Machines[0], w.any())
	}
}

func (w *Network) any() *Machine { return w.Machines[w.rng.IntN(len(w.Machines))] }

// restart ends a daemon, and starts it again after a while, sometimes with another clock. While a daemon runs, it
// measures time by a monotonic clock, which times here do not have.
func (w *Network) restart(m *Machine, end func()) {
	end()
	if w.rng.IntN(3) == 0 {
		m.setClock()
	}
	w.Later(w.Draw(15*time.Second), func() { w.start(m) })
}

// setClock sets a machine's clock to another time that Config.Skew allows.
func (m *Machine) setClock() {
	if s := m.net.cfg.Skew; s > 0 {
		m.skew = m.net.Draw(2*s) - s
	}
}

// leave takes a node out of its cluster for good; if it is the cluster's first one, the whole cluster out of the
// clusterset. Without pins, only a message of its own could do that, which a node has no part in. The first cluster
// stays.
func (w *Network) leave(m *Machine) {
	switch {
	case m.number > 0:
		m.takeOut()
		for _, p := range w.Machines {
			if p.cluster == m.cluster && p.node != nil {
				p.publishCluster()
			}
		}
	case m.cluster > 0 && w.cfg.Pinned:
		for _, p := range w.Machines {
			if p.cluster == m.cluster {
				p.takeOut()
			}
		}
		w.pins = maps.Clone(w.pins)
		delete(w.pins, m.Self.Cluster)
		clear(w.verified)
		clear(w.seals)
		for _, p := range w.Machines {
			if p.node != nil {
				p.do(func(n *node.Node, now time.Time) { n.Repin(w.pins, now) })
			}
		}
	}
}

// takeOut turns a machine off for good. Those that have it as a seed are told so, as by a person.
func (m *Machine) takeOut() {
	m.TurnOff()
	m.left = true
	for _, p := range m.net.Machines {
		if p.node != nil && slices.Contains(p.seeds, m) {
			p.do(func(n *node.Node, _ time.Time) { n.SetSeeds(p.seedAddrs(), nil) })
		}
	}
}

// isolate cuts a machine off, both ways.
func (w *Network) isolate(m *Machine) {
	for _, p := range w.Machines {
		if p != m {
			w.Cut(m, p)
			w.Cut(p, m)
		}
	}
}

// split cuts the machines into two sides, at random or between clusters, both ways or one.
func (w *Network) split() {
	both, clusters := w.rng.IntN(3) > 0, w.rng.IntN(2) > 0
	side := map[int]bool{}
	for i, m := range w.Machines {
		if clusters {
			i = m.cluster
		}
		if _, drawn := side[i]; !drawn {
			side[i] = w.rng.IntN(2) > 0
		}
	}
	of := func(i int, m *Machine) bool {
		if clusters {
			return side[m.cluster]
		}
		return side[i]
	}
	for i, a := range w.Machines {
		for j, b := range w.Machines {
			if !of(i, a) && of(j, b) {
				w.Cut(a, b)
				if both {
					w.Cut(b, a)
				}
			}
		}
	}
}

// breakStreams breaks all connections of a machine: what is on its way is lost.
func (w *Network) breakStreams(m *Machine) {
	if !m.Runs() {
		return
	}
	for _, c := range m.conns() {
		c.broke()
		c.close()
	}
}
