package sim

import (
	"hash/fnv"
	"time"
)

const (
	// bandwidth is how many bits a second a machine sends, unless its link is slow.
	bandwidth = 1e9
	// retransmit is how long TCP waits at least before it sends a lost tail again.
	retransmit = 200 * time.Millisecond
)

// Cut loses what one machine sends to another from now on, and Heal ends all cuts.
func (w *Network) Cut(from, to *Machine) { w.cut[[2]*Machine{from, to}] = true }

// Heal ends all cuts.
func (w *Network) Heal() { clear(w.cut) }

// passes reports whether what one machine sends reaches another.
func (w *Network) passes(from, to *Machine) bool {
	return !from.off && !to.off && (len(w.cut) == 0 || !w.cut[[2]*Machine{from, to}])
}

// talk reports whether two machines reach each other.
func (w *Network) talk(a, b *Machine) bool { return w.passes(a, b) && w.passes(b, a) }

// delay is how long a packet takes.
func (w *Network) delay(a, b *Machine) time.Duration {
	base := w.base(a, b)
	return base + w.Draw(base/20+w.Jitter)
}

// base is how long a packet takes at least: half a millisecond inside a cluster, and 30 to 80 ms between two.
func (w *Network) base(a, b *Machine) time.Duration {
	return w.bases[a.cluster*w.cfg.Clusters+b.cluster]
}

// bases returns base of each two clusters.
func bases(clusters int) (out []time.Duration) {
	for x := range clusters {
		for y := range clusters {
			base := 500 * time.Microsecond
			if x != y {
				hash := fnv.New32a()
				hash.Write([]byte(clusterName(min(x, y)) + " " + clusterName(max(x, y))))
				base = 30*time.Millisecond + time.Duration(hash.Sum32()%50)*time.Millisecond
			}
			out = append(out, base)
		}
	}
	return out
}

// occupy has a machine's link send bytes.
func (m *Machine) occupy(wire int) {
	m.free = max(m.free, m.net.now) + time.Duration(float64(wire)*8/m.bits*float64(time.Second))
}

// onWire returns what a frame takes on the wire, with its head, TLS, TCP, IP and acknowledgements, and in
// how many packets.
func onWire(size int) (wire, packets int) {
	t := size + 4
	t += 22 * (1 + t/16384)
	packets = (t + 1447) / 1448
	return t + 52*packets + 52*((packets+1)/2), packets
}

// late is how much later packets arrive because some were lost.
func (w *Network) late(packets int, delay time.Duration) time.Duration {
	if w.Loss == 0 {
		return 0
	}
	for range min(packets, 50) {
		if w.rng.Float64() >= w.Loss {
			continue
		}
		if packets <= 3 { // nothing follows that tells of the loss
			return max(retransmit, 3*delay) + 2*delay
		}
		return 2 * delay
	}
	return 0
}
