package locality

import "strait.io/strait/clustermesh"

// Part is what the endpoints of one cluster have of a Choice.
type Part struct {
	// Expected is how many of them would be used if nothing was wrong with them, and Healthy how many
	// of these are ready, reached, and not drained.
	Expected, Healthy int
	// Share is which part of new connections they get, 0 to 1.
	Share float64
}

// Part returns the part of one cluster.
func (c Choice) Part(of clustermesh.ClusterName) (p Part) {
	for i := range c.Verdicts {
		if v := &c.Verdicts[i]; v.Cluster == of && v.expected() {
			p.Expected++
			if v.class == healthy {
				p.Healthy++
			}
		}
	}
	p.Share = c.Shares()[of]
	return p
}

// Enough reports whether as many of a cluster's endpoints are healthy as it needs by itself.
func (p Preference) Enough(of Part) bool { return p.bears(of.Healthy, of.Expected) >= 1 }

// Shares returns which part of new connections each cluster gets, 0 to 1. Clusters without any are not in
// it.
func (c Choice) Shares() map[clustermesh.ClusterName]float64 {
	total, out := 0.0, map[clustermesh.ClusterName]float64{}
	for i := range c.Verdicts {
		if v := &c.Verdicts[i]; v.Weight > 0 {
			total += float64(v.Weight)
			out[v.Cluster] += float64(v.Weight)
		}
	}
	for cluster := range out {
		out[cluster] /= total
	}
	return out
}
