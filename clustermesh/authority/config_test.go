package authority

import (
	"strings"
	"testing"

	"strait.io/strait/clustermesh"
)

// TestConfiguration: a cluster is configured by those that it names and pins, in the namespaces that
// are open to them. What others say is left out and counted, which is no Problem.
func TestConfiguration(t *testing.T) {
	published := func() clustermesh.Record {
		r := clustermesh.Record{Origin: clustermesh.Origin{Cluster: "east"}}
		for _, ns := range []string{"shop", "web-1", "closed", "annotated"} {
			r.Content.Config = append(r.Content.Config, clustermesh.ConfigObject{
				Kind: "MultiClusterService.networking.gke.io", Name: clustermesh.ServiceName{Namespace: ns, Name: "cart"}, Spec: "{}",
			})
		}
		return r
	}
	accepting := func(from ...clustermesh.ClusterName) Self {
		s := self
		s.ConfigFrom, s.Accept = from, clustermesh.Accept{"annotated": {"east"}, "web-1": nil}
		return s
	}
	for what, c := range map[string]struct {
		got      clustermesh.Record
		want     string
		unasked  int
		problems string
	}{
		"named":      {got: Admit(accepting("south", "east"), pins()["east"], Statement{}, published()), want: "shop annotated", problems: "web-1 closed"},
		"not named":  {got: Admit(accepting("south"), pins()["east"], Statement{}, published()), unasked: 4},
		"none named": {got: Admit(self, pins()["east"], Statement{}, published()), unasked: 4},
		"unpinned":   {got: AdmitUnpinned(accepting("east"), published()), unasked: 4},
		"no accept":  {got: AdmitUnpinned(Self{Cluster: "west", ConfigFrom: []clustermesh.ClusterName{"east"}}, published()), unasked: 4},
		"its own":    {got: Admit(Self{Cluster: "east"}, pins()["east"], Statement{}, published()), want: "shop web-1 closed annotated"},
	} {
		var names, refused []string
		for _, o := range c.got.Content.Config {
			names = append(names, o.Name.Namespace)
		}
		for _, p := range c.got.Problems {
			object, _, _ := strings.Cut(strings.TrimPrefix(p.Object, "MultiClusterService.networking.gke.io "), "/")
			refused = append(refused, object)
		}
		if strings.Join(names, " ") != c.want || c.got.Unasked != c.unasked || strings.Join(refused, " ") != c.problems {
			t.Errorf("%s: %q is in force, %d not asked for, problems of %q; want %q, %d, %q", what, names, c.got.Unasked, refused, c.want, c.unasked, c.problems)
		}
	}
	if r := published(); len(Admit(self, pins()["east"], Statement{}, r).Content.Config) != 0 || len(r.Content.Config) != 4 {
		t.Error("the argument changed")
	}
}
