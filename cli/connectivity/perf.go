package connectivity

import (
	"math"
	"net/netip"
	"slices"
)

// Measure is what a client pod is asked to measure, one thing after the other.
type Measure struct {
	// Direct are the pods' own addresses to which a connection to Through can lead. Each round connects to
	// one, and then to Through.
	Direct  []netip.AddrPort `json:"direct"`
	Through netip.AddrPort   `json:"through"`
	Rounds  int              `json:"rounds"`
	// RoundMillis is how long each half of a round connects, again and again.
	RoundMillis int `json:"roundMillis"`
	// Far is the pod that streams for some seconds, answers pings, and to which the MTU is sought.
	Far           netip.AddrPort `json:"far"`
	StreamSeconds int            `json:"streamSeconds"`
	Pings         int            `json:"pings"`
}

// Measured is what came of it.
type Measured struct {
	// DirectRates and ThroughRates are connects per second, of each round.
	DirectRates  []float64 `json:"directRates"`
	ThroughRates []float64 `json:"throughRates"`
	// StreamBytes arrived in StreamSeconds.
	StreamBytes   int64   `json:"streamBytes"`
	StreamSeconds float64 `json:"streamSeconds"`
	// RTTs are the times of the pings that were answered, in milliseconds.
	RTTs []float64 `json:"rttMillis"`
	// MTU is the largest packet that arrives undivided; 0 if that was not found out.
	MTU int `json:"mtu,omitempty"`
	// Errors are what could not be measured.
	Errors []string `json:"errors,omitempty"`
}

// Pair is what the network between two clusters does, measured from one pod to others.
type Pair struct {
	From string `json:"from"`
	To   string `json:"to"`
	// DirectRate and ThroughRate are connects per second, one at a time, to the pods' own addresses
	// and to the ClusterSetIP: the median of the rounds.
	DirectRate  float64 `json:"directConnectsPerSecond"`
	ThroughRate float64 `json:"clusterSetIPConnectsPerSecond"`
	// Ratio is the second of these by the first.
	Ratio float64 `json:"ratio"`
	// Mbit is what one TCP stream carries, in Mbit/s.
	Mbit float64 `json:"megabitsPerSecond"`
	// RTT50 and RTT99 are percentiles in milliseconds, and Lost which part of the pings was not
	// answered, 0 to 1.
	RTT50  float64  `json:"rtt50Millis"`
	RTT99  float64  `json:"rtt99Millis"`
	Lost   float64  `json:"lost"`
	MTU    int      `json:"mtu,omitempty"`
	Errors []string `json:"errors,omitempty"`
}

// usual is how much is measured of each pair: some 12 seconds.
var usual = Measure{Rounds: 5, RoundMillis: 500, StreamSeconds: 5, Pings: 200}

// Measures returns what the first pod of a cluster measures of another one; false if they have no
// addresses of one family, or there is no ClusterSetIP.
func Measures(from, to Cluster) (m Measure, ok bool) {
	at := slices.IndexFunc(from.Clients, func(c Client) bool { return !c.Host })
	if at < 0 {
		return m, false
	}
	client := from.Clients[at]
	for _, family := range []string{"IPv4", "IPv6"} {
		m = usual
		vip, has := ofFamily(from.Imports[to.Name], family)
		_, own := ofFamily(client.Addresses, family)
		if !has || !own {
			continue
		}
		m.Through = netip.AddrPortFrom(vip, ServicePort)
		for _, s := range to.Servers {
			addr, has := ofFamily(s.Addresses, family)
			if !has {
				continue
			}
			pod := netip.AddrPortFrom(addr, PodPort)
			// In its own cluster, a client gets the pod on its own node, and the network is that to
			// another one.
			if from.Name != to.Name || s.Node == client.Node {
				m.Direct = append(m.Direct, pod)
			}
			if !m.Far.IsValid() || s.Node != client.Node && from.Name == to.Name {
				m.Far = pod
			}
		}
		if len(m.Direct) > 0 {
			return m, true
		}
	}
	return m, false
}

// Sum sums up what was measured.
func Sum(from, to string, m Measure, got Measured) Pair {
	p := Pair{From: from, To: to, MTU: got.MTU, Errors: got.Errors, DirectRate: quantile(got.DirectRates, 0.5), ThroughRate: quantile(got.ThroughRates, 0.5)}
	if p.DirectRate > 0 {
		p.Ratio = p.ThroughRate / p.DirectRate
	}
	if got.StreamSeconds > 0 {
		p.Mbit = float64(got.StreamBytes) * 8 / 1e6 / got.StreamSeconds
	}
	p.RTT50, p.RTT99 = quantile(got.RTTs, 0.5), quantile(got.RTTs, 0.99)
	if m.Pings > 0 {
		p.Lost = 1 - float64(len(got.RTTs))/float64(m.Pings)
	}
	return p
}

// quantile returns the value below which a part of the values lies; 0 if there are none.
func quantile(values []float64, part float64) float64 {
	if len(values) == 0 {
		return 0
	}
	sorted := slices.Sorted(slices.Values(values))
	return sorted[max(0, int(math.Ceil(part*float64(len(sorted))))-1)]
}
