package plan_test

import (
	"net/netip"
	"testing"

	"strait.io/strait/clustermesh"
	"strait.io/strait/daemon/plan"
)

// die makes all nodes agree that node n1 of a cluster is dead.
func die(s *clustermesh.State, cluster string) {
	dead := clustermesh.Origin{Cluster: clustermesh.ClusterName(cluster), Node: "n1"}
	s.Contacts = s.Contacts.With(dead, clustermesh.Silent)
	for _, witness := range []string{"a", "b", "c"} {
		edit(s, witness, "n2", func(c *clustermesh.Content) { c.Silent = []clustermesh.Silence{{Origin: dead, Epoch: 1}} })
	}
}

// TestWhatIfDead: what is said of a machine's death is what connections then do.
func TestWhatIfDead(t *testing.T) {
	config := plan.Config{CIDRs: []netip.Prefix{cidr}, Mesh: true, Locality: plan.Locality{Factor: 1.4}}
	self := plan.Self{Cluster: "a", Node: "n2"}
	for victim, want := range map[string]string{"a": "b=50% c=50%", "b": "b=33% c=67%"} {
		s := clusterset()
		edit(&s, "a", "n2", unready)
		if victim != "a" {
			edit(&s, "a", "n1", unready)
		}
		c, err := plan.ParseChange("node " + victim + "/n1 dead")
		if err != nil {
			t.Fatal(err)
		}
		then, err := c.Apply(s)
		if err != nil {
			t.Fatal(err)
		}
		said := where(once(then, self, config))
		die(&s, victim)
		if is := where(once(s, self, config)); said != is || said != want {
			t.Errorf("%s/n1 dead: said %s, is %s, want %s", victim, said, is, want)
		}
	}
}

func FuzzParseChange(f *testing.F) {
	for _, text := range []string{"cluster a down", "node a/n1 dead", "drain a", "drain a/n2", "scale b to 3", "scale b to 10001", "node / dead", "drain /"} {
		f.Add(text)
	}
	f.Fuzz(func(t *testing.T, text string) {
		c, err := plan.ParseChange(text)
		if err != nil {
			return
		}
		if then, err := c.Apply(clusterset()); err == nil {
			planFor(then)
		}
	})
}
