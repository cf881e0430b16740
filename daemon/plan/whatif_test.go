package plan_test

import (
	"fmt"
	"maps"
	"net/netip"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"

	"strait.io/strait/clustermesh"
	"strait.io/strait/daemon/plan"
)

// where says which part of new connections goes to each cluster.
func where(r plan.Result) string {
	shares, total := map[clustermesh.ClusterName]uint32{}, uint32(0)
	for _, v := range r.Imports[0].Frontends()[0].Choice.Verdicts {
		shares[v.Cluster] += v.Weight
		total += v.Weight
	}
	var out []string
	for _, c := range slices.Sorted(maps.Keys(shares)) {
		if shares[c] > 0 {
			out = append(out, fmt.Sprintf("%s=%d%%", c, (100*shares[c]+total/2)/total))
		}
	}
	return strings.Join(out, " ")
}

func TestWhatIf(t *testing.T) {
	config := plan.Config{CIDRs: []netip.Prefix{cidr}, Mesh: true, Locality: plan.Locality{Factor: 1.4}}
	for change, want := range map[string]string{
		"cluster a down":   "b=50% c=50%",
		"cluster b down":   "a=100%",
		"node a/n1 dead":   "a=100%",
		"drain a":          "b=50% c=50%",
		"drain a/n1":       "a=100%",
		"scale a to 0":     "b=50% c=50%",
		"scale a to 5":     "a=100%",
		" drain   a ":      "b=50% c=50%",
		"cluster x down":   `no cluster is called "x"`,
		"node a/n9 dead":   `cluster a has no node "n9"`,
		"scale a to -1":    "is not a number of endpoints",
		"scale a to many":  "is not a number of endpoints",
		"move a":           "is no change that strait knows",
		"":                 "is no change that strait knows",
		"node n1 dead":     "is no change that strait knows",
		"cluster  a  down": "b=50% c=50%",
	} {
		s := clusterset()
		c, err := plan.ParseChange(change)
		var then clustermesh.State
		if err == nil {
			then, err = c.Apply(s)
		}
		if err != nil {
			if !strings.Contains(err.Error(), want) {
				t.Errorf("%q: %v, want %s", change, err, want)
			}
			continue
		}
		if got := where(once(then, plan.Self{Cluster: "a", Node: "n1"}, config)); got != want {
			t.Errorf("%q: %s, want %s", change, got, want)
		}
		if !reflect.DeepEqual(s, clusterset()) {
			t.Errorf("%q changed the state that it was asked of", change)
		}
	}
}

// TestWhatIfReason: only endpoints that a change takes away have it as their reason.
func TestWhatIfReason(t *testing.T) {
	for _, tc := range []struct{ change, cluster, node, want string }{
		{"cluster  b  down", "b", "n1", "cluster b is down"},
		{"cluster b down", "a", "n1", ""},
		{"node b/n1 dead", "b", "n1", "node b/n1 is dead"},
		{"node b/n1 dead", "b", "n2", ""},
		{"node b/n1 dead", "a", "n1", ""},
		{"drain b", "b", "n1", ""},
		{"scale b to 1", "b", "n1", ""},
	} {
		c, err := plan.ParseChange(tc.change)
		if err != nil {
			t.Fatal(err)
		}
		if got := c.Reason(tc.cluster, tc.node); got != tc.want {
			t.Errorf("%s: the reason on %s/%s is %q, want %q", tc.change, tc.cluster, tc.node, got, tc.want)
		}
	}
}

// TestWhatIfIsWhatHappens: what is said of a change is what the change then does to the kernel, on any node,
// from any state of the pods.
func TestWhatIfIsWhatHappens(t *testing.T) {
	config := plan.Config{CIDRs: []netip.Prefix{cidr}, Mesh: true, Locality: plan.Locality{Factor: 1.4}}
	clusters, nodes := []string{"a", "b", "c"}, []string{"n1", "n2"}
	// Each makes real what the words say.
	changes := map[string]func(s *clustermesh.State, cluster, node string){
		"drain %s": func(s *clustermesh.State, cluster, _ string) {
			edit(s, cluster, "", func(c *clustermesh.Content) { c.Drain = &clustermesh.Drain{} })
		},
		"drain %s/%s": func(s *clustermesh.State, cluster, node string) {
			edit(s, cluster, node, func(c *clustermesh.Content) { c.Node.Drain = &clustermesh.Drain{} })
		},
		// Its machines are silent, and no machine of the others is.
		"cluster %s down": func(s *clustermesh.State, cluster, _ string) {
			for _, n := range nodes {
				s.Contacts = s.Contacts.With(clustermesh.Origin{Cluster: clustermesh.ClusterName(cluster), Node: clustermesh.NodeName(n)}, clustermesh.Silent)
			}
		},
		"scale %s to 1": func(s *clustermesh.State, cluster, _ string) {
			edit(s, cluster, "n1", ready)
			edit(s, cluster, "n2", func(c *clustermesh.Content) { c.Endpoints = nil })
		},
		"scale %s to 2": func(s *clustermesh.State, cluster, _ string) {
			edit(s, cluster, "n1", ready)
			edit(s, cluster, "n2", ready)
		},
	}
	rapid.Check(t, func(t *rapid.T) {
		s := clusterset()
		cluster, node := rapid.SampledFrom(clusters).Draw(t, "cluster"), rapid.SampledFrom(nodes).Draw(t, "node")
		others := false // serve
		for _, c := range clusters {
			for _, n := range nodes {
				if rapid.Bool().Draw(t, c+n) {
					edit(&s, c, n, unready)
				} else {
					others = others || c != cluster
				}
			}
		}
		words := rapid.SampledFrom(slices.Sorted(maps.Keys(changes))).Draw(t, "change")
		if words == "cluster %s down" && !others {
			return // what is not heard is then used as the least bad, while explain has it serve no client
		}
		text := fmt.Sprintf(words, []any{cluster, node}[:strings.Count(words, "%s")]...)
		c, err := plan.ParseChange(text)
		if err != nil {
			t.Fatal(err)
		}
		then, err := c.Apply(s)
		if err != nil {
			t.Fatal(err)
		}
		changes[words](&s, cluster, node)
		for _, self := range []plan.Self{{Cluster: "a", Node: "n1"}, {Cluster: "b", Node: "n2"}} {
			if words == "cluster %s down" && string(self.Cluster) == cluster {
				continue // what is in it is down too
			}
			said, is := once(then, self, config).Desired.Frontends, once(s, self, config).Desired.Frontends
			if !reflect.DeepEqual(said, is) {
				t.Fatalf("%s: said %+v, is %+v", text, said, is)
			}
		}
	})
}

// busy is a large clusterset in which every service asks for weights and a minimum, and each third
// endpoint is not ready.
func busy() clustermesh.State {
	s := large()
	edit(&s, "a", "", func(c *clustermesh.Content) {
		for i := range c.Exports {
			c.Exports[i].Routing = &clustermesh.Routing{
				Weights:  []clustermesh.ClusterWeight{{Cluster: "a", Weight: 90}, {Cluster: "b", Weight: 10}},
				MinReady: clustermesh.MinReady{Percent: 80},
			}
		}
	})
	for o := range s.Records.All() {
		if o.Node != "" {
			edit(&s, string(o.Cluster), string(o.Node), func(c *clustermesh.Content) {
				for i := range c.Endpoints {
					c.Endpoints[i].Ready = i%3 > 0
				}
			})
		}
	}
	return s
}

var spilling = plan.Config{CIDRs: []netip.Prefix{cidr}, Mesh: true, Locality: plan.Locality{Factor: 1.4, Ramp: 10 * time.Second}}

// BenchmarkOneChangeSpilling is BenchmarkOneChange with weights, spill and ramps in use.
func BenchmarkOneChangeSpilling(b *testing.B) {
	s, now := busy(), time.Unix(1000, 0)
	p := newSeries(plan.Self{Cluster: "a", Node: "n1"}, spilling)
	p.Now = now
	p.plan(s)
	b.ReportAllocs()
	for b.Loop() {
		b.StopTimer()
		edit(&s, "a", "n2", func(c *clustermesh.Content) { c.Endpoints[77].Ready = !c.Endpoints[77].Ready })
		now = now.Add(time.Second)
		p.Now = now
		b.StartTimer()
		p.plan(s)
	}
}

// BenchmarkWhatIf is what a node computes to say what 10,000 services would do if a cluster went down.
func BenchmarkWhatIf(b *testing.B) {
	s := busy()
	c, err := plan.ParseChange("cluster a down")
	if err != nil {
		b.Fatal(err)
	}
	for b.Loop() {
		then, err := c.Apply(s)
		if err != nil {
			b.Fatal(err)
		}
		once(then, plan.Self{Cluster: "a", Node: "n1"}, spilling)
	}
}
