package record

import (
	"math"
	"slices"
	"strings"
	"testing"

	"strait.io/strait/clustermesh"
)

// strict is a Judge that lets nothing pass that is its to judge.
type strict struct {
	asked           []string // the kinds of the Services
	noRule, tooMany []string
	quotas          map[Quota]int
}

func (s *strict) Node(*clustermesh.Node) *clustermesh.Node                { return nil }
func (s *strict) Endpoints([]clustermesh.Endpoint) []clustermesh.Endpoint { return nil }
func (s *strict) ClusterIPs(es []clustermesh.Export) []clustermesh.Export { return es }
func (s *strict) Configures() bool                                        { return false }
func (s *strict) NoRule(field string)                                     { s.noRule = append(s.noRule, field) }
func (s *strict) TooMany(field string, _, _ int)                          { s.tooMany = append(s.tooMany, field) }
func (s *strict) Service(what string, _ clustermesh.ServiceName) bool {
	s.asked = append(s.asked, what)
	return false
}
func (s *strict) Quota(q Quota) int {
	if most, limited := s.quotas[q]; limited {
		return most
	}
	return math.MaxInt
}

// TestRestricted: a Judge is asked about each kind of content that pins or namespaces can restrict. The
// others are for the origin alone to say. A kind that moves from one list to the other changes what
// other clusters can do here.
func TestRestricted(t *testing.T) {
	const want = "drain drains allocations silent late gossipKeys revoked withdrawn results nodes asOf"
	var free []string
	each(t, func(_ *table, name string, c clustermesh.Content) {
		got := Admit(&strict{}, c)
		for _, k := range kinds.kinds {
			if k.about().name == name && k.clear(&got) {
				free = append(free, name)
			}
		}
	})
	if got := strings.Join(free, " "); got != want {
		t.Errorf("admitted: %s, want %s", got, want)
	}
	j := &strict{}
	Admit(j, saidByBoth())
	if got := strings.Join(j.asked, ", "); got != "ServiceExport, mirrored Service, global Service" {
		t.Errorf("asked about %s", got)
	}
}

// saidByBoth is a content with one element of each list that shares Services.
func saidByBoth() clustermesh.Content {
	return clustermesh.Content{Exports: make([]clustermesh.Export, 1), Mirrors: make([]clustermesh.Export, 1), Globals: make([]clustermesh.Global, 1)}
}

// open lets everything pass, up to its quotas.
type open struct{ strict }

func (o *open) Endpoints(es []clustermesh.Endpoint) []clustermesh.Endpoint { return es }
func (o *open) Service(string, clustermesh.ServiceName) bool               { return true }

// TestQuotas: each list has its own quota, or a part of the one for all Services.
func TestQuotas(t *testing.T) {
	said := clustermesh.Content{
		Endpoints: make([]clustermesh.Endpoint, 3), Nodes: make([]clustermesh.NodeName, 3),
		Exports: []clustermesh.Export{{Created: 3}, {Created: 1}, {Created: 2}}, Mirrors: make([]clustermesh.Export, 3), Globals: make([]clustermesh.Global, 3),
	}
	for _, c := range []struct {
		quotas  map[Quota]int
		want    [5]int
		tooMany []string
	}{
		{nil, [5]int{3, 3, 3, 3, 3}, nil},
		{map[Quota]int{QuotaEndpoints: 1, QuotaNodes: 2}, [5]int{1, 2, 3, 3, 3}, []string{"endpoints", "nodes"}},
		{map[Quota]int{QuotaShared: 9}, [5]int{3, 3, 3, 3, 3}, nil},
		{map[Quota]int{QuotaShared: 7}, [5]int{3, 3, 3, 3, 1}, []string{"globals"}},
		{map[Quota]int{QuotaShared: 2}, [5]int{3, 3, 2, 0, 0}, []string{"exports", "mirrors", "globals"}},
	} {
		j := &open{strict{quotas: c.quotas}}
		got := Admit(j, said)
		left := [5]int{len(got.Endpoints), len(got.Nodes), len(got.Exports), len(got.Mirrors), len(got.Globals)}
		if left != c.want || !slices.Equal(j.tooMany, c.tooMany) {
			t.Errorf("%v: left %v, too many %v; want %v, %v", c.quotas, left, j.tooMany, c.want, c.tooMany)
		}
		if len(got.Exports) == 2 && (got.Exports[0].Created != 1 || got.Exports[1].Created != 2 || said.Exports[0].Created != 3) {
			t.Errorf("the oldest stay: %+v; given %+v", got.Exports, said.Exports)
		}
	}
}
