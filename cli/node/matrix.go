package node

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"strait.io/strait/daemon/api"
)

// matrix is how the clusters reach each other: the longest round trip between their nodes, and what
// tunnels carry, as the nodes see them that were asked.
type matrix struct {
	Clusters []string `json:"clusters"`
	// Cells has a row for each cluster that measures, and a cell for each that it measures to.
	Cells [][]matrixCell `json:"cells"`
}

type matrixCell struct {
	Glyph string `json:"glyph"`
	Text  string `json:"text"`
	// RTT is the round trip in milliseconds; 0 if it is not known.
	RTT float64 `json:"rtt,omitempty"`
	// About is the same in a sentence.
	About string `json:"about"`
}

// clusterLink sums up the tunnels from the nodes of one cluster to another.
type clusterLink struct {
	states    map[string]int
	state     api.ClusterState
	rtt, loss float64
	nodes     int // how many saw it
}

func matrixOf(answered []seen) matrix {
	links, asked, names := map[[2]string]*clusterLink{}, map[string]bool{}, map[string]bool{}
	for _, s := range answered {
		asked[s.Cluster] = true
		for _, c := range s.Status.Clusters {
			names[c.Name] = true
			if c.Name == s.Cluster {
				continue
			}
			l := links[[2]string{s.Cluster, c.Name}]
			if l == nil {
				l = &clusterLink{states: map[string]int{}, state: c.State}
				links[[2]string{s.Cluster, c.Name}] = l
			}
			l.add(c)
		}
	}
	m := matrix{Clusters: slices.Sorted(maps.Keys(names)), Cells: [][]matrixCell{}}
	for _, from := range m.Clusters {
		row := []matrixCell{}
		for _, to := range m.Clusters {
			row = append(row, cellOf(from, to, asked, links))
		}
		m.Cells = append(m.Cells, row)
	}
	return m
}

// add adds what one more node sees. The worst state of the cluster counts.
func (l *clusterLink) add(c api.Cluster) {
	l.nodes++
	if clusterRank(c.State) > clusterRank(l.state) {
		l.state = c.State
	}
	if c.Tunnels == nil {
		return
	}
	for state, n := range c.Tunnels.States {
		l.states[state] += n
	}
	l.rtt, l.loss = max(l.rtt, c.Tunnels.RTT), max(l.loss, c.Tunnels.Loss)
}

func clusterRank(s api.ClusterState) int {
	return slices.Index([]api.ClusterState{api.Joined, api.Quiet, api.Held}, s)
}

func cellOf(from, to string, asked map[string]bool, links map[[2]string]*clusterLink) matrixCell {
	if from == to {
		return matrixCell{Text: api.None, About: "the cluster itself"}
	}
	if l := links[[2]string{from, to}]; l != nil {
		return l.cell(fmt.Sprintf("from %s to %s", from, to))
	}
	if l := links[[2]string{to, from}]; l != nil && !asked[from] {
		return l.cell(fmt.Sprintf("between %s and %s, measured from %s", from, to, to))
	}
	if asked[from] {
		return matrixCell{Glyph: api.Unknown, Text: "not known", About: fmt.Sprintf("%s knows nothing of %s", from, to)}
	}
	return matrixCell{Glyph: api.Unknown, Text: "not asked", About: fmt.Sprintf("no node of %s was asked: start strait ui with its --context too", from)}
}

func (l *clusterLink) cell(about string) matrixCell {
	tunnels, bad, weak := 0, 0, 0
	var parts []string
	for _, state := range slices.Sorted(maps.Keys(l.states)) {
		n := l.states[state]
		tunnels += n
		switch {
		case (&api.Tunnel{State: state}).Down() != "":
			bad += n
		case state == "lossy" || state == "returning":
			weak += n
		}
		parts = append(parts, fmt.Sprintf("%d %s", n, state))
	}
	c := matrixCell{Glyph: api.OK, Text: "heard", RTT: l.rtt}
	if l.rtt > 0 {
		c.Text = fmt.Sprintf("%.1f ms", l.rtt)
	}
	switch {
	case l.state == api.Held:
		c.Glyph, c.Text = api.Bad, "not heard"
	case tunnels > 0 && bad == tunnels:
		c.Glyph, c.Text = api.Bad, "no tunnel"
	case bad > 0:
		c.Glyph, c.Text = api.Bad, fmt.Sprintf("%d of %d down", bad, tunnels)
	case l.state == api.Quiet:
		c.Glyph, c.Text = api.Warn, "daemons down"
	case weak > 0:
		c.Glyph = api.Warn
	}
	c.About = fmt.Sprintf("%s: %s", about, l.state)
	if len(parts) > 0 {
		c.About += fmt.Sprintf(", tunnels %s", strings.Join(parts, ", "))
	}
	if l.loss > 0 {
		c.About += fmt.Sprintf(", %.0f %% lost", 100*l.loss)
	}
	if l.rtt > 0 {
		c.About += fmt.Sprintf(", round trip %.1f ms", l.rtt)
	}
	return c
}
