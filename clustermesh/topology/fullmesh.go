package topology

import (
	"math"

	"strait.io/strait/clustermesh"
)

// FullMesh makes every two members neighbours. Each passes records on, and none forwards packets.
type FullMesh struct{}

var _ Topology = FullMesh{}

// Ways implements Topology.
func (FullMesh) Ways(v View) Ways { return Flood(v.Members) }

// Flood are neighbours of which any few pass records on.
type Flood []clustermesh.Origin

var _ Ways = Flood{}

// Neighbours implements Ways.
func (f Flood) Neighbours() []clustermesh.Origin { return f }

// Spread implements Ways. A writer sends its records to a few, and offers them to all others. What others
// wrote is passed on to a few. What was asked for is only offered to a few, because most have it already.
func (Flood) Spread(news News, neighbours []clustermesh.Origin) Spread {
	n := fanOut(len(neighbours))
	switch {
	case news.From == (clustermesh.Origin{}):
		n = min(n, len(neighbours))
		return Spread{Records: neighbours[:n], Offers: neighbours[n:]}
	case news.Repaired:
		return Spread{Offers: few(n, news, neighbours)}
	}
	return Spread{Records: few(n, news, neighbours)}
}

// Relays implements Topology.
func (FullMesh) Relays(View) []clustermesh.Origin { return nil }

// NextHop implements Topology.
func (FullMesh) NextHop(clustermesh.Origin, []clustermesh.Origin) func(clustermesh.Origin) clustermesh.Origin {
	return func(to clustermesh.Origin) clustermesh.Origin { return to }
}

// Roles implements Topology.
func (FullMesh) Roles(clustermesh.Origin, []clustermesh.Origin) Roles { return Roles{Relay: true} }

// fanOut returns how many of n neighbours are sent news. The rule is Corrosion's, with a larger minimum
// than random spreading needs.
func fanOut(n int) int {
	return max(3, int(math.Round(3*math.Log10(float64(n+1)))))
}

// few returns the first n neighbours that lack the news: not the one that sent it, nor the one that wrote it.
func few(n int, news News, neighbours []clustermesh.Origin) []clustermesh.Origin {
	out := make([]clustermesh.Origin, 0, n)
	for _, p := range neighbours {
		if len(out) == n {
			break
		}
		if p != news.From && p != news.Writer {
			out = append(out, p)
		}
	}
	return out
}
