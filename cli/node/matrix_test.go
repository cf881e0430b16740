package node

import (
	"strings"
	"testing"

	"strait.io/strait/daemon/api"
)

// TestMatrix: a cell for each pair, from the nodes that were asked; the worst of what they see counts.
func TestMatrix(t *testing.T) {
	sees := func(cluster, node string, others ...api.Cluster) seen {
		return seen{Cluster: cluster, Node: node, Status: &api.Status{Cluster: cluster, Node: node,
			Clusters: append([]api.Cluster{{Name: cluster, State: api.Here}}, others...)}}
	}
	other := func(name string, state api.ClusterState, rtt float64, states map[string]int) api.Cluster {
		c := api.Cluster{Name: name, State: state}
		if states != nil {
			c.Tunnels = &api.Tunnels{States: states, RTT: rtt}
		}
		return c
	}
	m := matrixOf([]seen{
		sees("a", "n1", other("b", api.Joined, 80, map[string]int{"carrying": 2}), other("c", api.Held, 0, map[string]int{"silent": 1}), other("d", api.Joined, 5, map[string]int{"carrying": 1, "one-way": 1})),
		sees("a", "n2", other("b", api.Joined, 91.26, map[string]int{"carrying": 2}), other("c", api.Joined, 3, map[string]int{"carrying": 1}), other("d", api.Quiet, 5, map[string]int{"carrying": 2})),
		sees("b", "n1", other("a", api.Joined, 90, map[string]int{"lossy": 2}), other("c", api.Joined, 0, map[string]int{"never": 2}), other("d", api.Quiet, 0, nil)),
	})
	if got := strings.Join(m.Clusters, " "); got != "a b c d" {
		t.Fatalf("clusters %s", got)
	}
	for _, c := range []struct{ at, glyph, text, about string }{
		{"aa", "", "–", "the cluster itself"},
		{"ab", "✓", "91.3 ms", "from a to b: joined, tunnels 4 carrying, round trip 91.3 ms"},
		{"ba", "!", "90.0 ms", "from b to a: joined, tunnels 2 lossy, round trip 90.0 ms"},
		{"ac", "✗", "not heard", "from a to c: held, tunnels 1 carrying, 1 silent, round trip 3.0 ms"},
		{"ad", "✗", "1 of 4 down", "from a to d: quiet, tunnels 3 carrying, 1 one-way, round trip 5.0 ms"},
		{"bc", "✗", "no tunnel", "from b to c: joined, tunnels 2 never"},
		{"bd", "!", "daemons down", "from b to d: quiet"},
		{"ca", "✗", "not heard", "between c and a, measured from a: held, tunnels 1 carrying, 1 silent, round trip 3.0 ms"},
		{"cd", "?", "not asked", "no node of c was asked: start strait ui with its --context too"},
	} {
		cell := m.Cells[c.at[0]-'a'][c.at[1]-'a']
		if cell.Glyph != c.glyph || cell.Text != c.text || cell.About != c.about {
			t.Errorf("%s: %q %q %q", c.at, cell.Glyph, cell.Text, cell.About)
		}
	}
}

func TestQuoted(t *testing.T) {
	for word, want := range map[string]string{"default/serve": "default/serve", "": "''", "cluster a down": "'cluster a down'", "it's": `'it'\''s'`, "*": "'*'", "$(reboot)": "'$(reboot)'"} {
		if got := quoted(word); got != want {
			t.Errorf("%q is quoted as %s, want %s", word, got, want)
		}
	}
}
