package clustermesh_test

import (
	"slices"
	"strings"
	"testing"

	"strait.io/strait/clustermesh"
)

const (
	hour  = 3600
	today = 1_700_000_000
)

func exportOf(name string, created int64, t clustermesh.ServiceType) clustermesh.Export {
	return clustermesh.Export{Service: clustermesh.ServiceName{Namespace: "shop", Name: name}, Type: t, Created: created}
}

// TestHistory says which exports are younger than they claim, by what their cluster wrote before.
func TestHistory(t *testing.T) {
	old := exportOf("cart", today-90*hour, clustermesh.ClusterSetIP)
	headless := exportOf("cart", old.Created, clustermesh.Headless)
	type exports = []clustermesh.Export
	for name, c := range map[string]struct {
		before clustermesh.Content
		now    exports
		since  int64 // 0: as old as it claims
	}{
		"the first record":           {clustermesh.Content{}, exports{old}, 0},
		"a build that does not say":  {clustermesh.Content{Exports: nil}, exports{old}, 0},
		"nothing changed":            {clustermesh.Content{AsOf: today, Exports: exports{old}}, exports{old}, 0},
		"a new export":               {clustermesh.Content{AsOf: today}, exports{exportOf("cart", today+9, clustermesh.ClusterSetIP)}, 0},
		"a clock that is 9 min slow": {clustermesh.Content{AsOf: today}, exports{exportOf("cart", today-540, clustermesh.ClusterSetIP)}, 0},
		"made again":                 {clustermesh.Content{AsOf: today, Exports: exports{old}}, exports{exportOf("cart", today+9, clustermesh.Headless)}, 0},
		"backdated":                  {clustermesh.Content{AsOf: today}, exports{exportOf("cart", 1, clustermesh.ClusterSetIP)}, today + hour},
		"an older date":              {clustermesh.Content{AsOf: today, Exports: exports{old}}, exports{exportOf("cart", 1, clustermesh.ClusterSetIP)}, today + hour},
		"another type":               {clustermesh.Content{AsOf: today, Exports: exports{old}}, exports{headless}, today + hour},
	} {
		h := clustermesh.History{}.Next("b", c.before, clustermesh.Content{Exports: c.now})
		var since int64
		if len(h.Late) == 1 {
			since = h.Late[0].Since
		}
		if since != c.since {
			t.Errorf("%s: counts since %d, want %d", name, since, c.since)
		}
	}
}

// TestHistoryLasts checks that a cluster cannot get rid of its past by what it writes later.
func TestHistoryLasts(t *testing.T) {
	backdated := clustermesh.Content{Exports: []clustermesh.Export{exportOf("cart", 1, clustermesh.Headless)}}
	h := clustermesh.History{}
	before := clustermesh.Content{AsOf: today}
	for i, next := range []clustermesh.Content{backdated, backdated, {}, backdated, {AsOf: 5}, backdated} {
		h = h.Next("b", before, next)
		if late := len(h.Late) == 1 && h.Late[0].Since == today+hour; late != (len(next.Exports) > 0) {
			t.Fatalf("record %d: %+v", i, h)
		}
		before = next
	}
}

func stateOf(contents map[clustermesh.ClusterName]clustermesh.Content) clustermesh.State {
	s := clustermesh.State{Records: clustermesh.ByOrigin[clustermesh.Record]{}}
	for c, content := range contents {
		o := clustermesh.Origin{Cluster: c}
		s.Records = s.Records.With(o, clustermesh.Record{Origin: o, Content: content})
	}
	return s
}

// TestBackdatedTakesNothingOver checks who wins, and who believes whom.
func TestBackdatedTakesNothingOver(t *testing.T) {
	honest, backdated := exportOf("cart", today, clustermesh.ClusterSetIP), exportOf("cart", 1, clustermesh.Headless)
	late := clustermesh.Late{Cluster: "b", Service: honest.Service, Created: 1, Since: today + hour}
	lie := clustermesh.Late{Cluster: "a", Service: honest.Service, Created: today, Since: today + 2*hour}
	exports := map[clustermesh.ClusterName]clustermesh.Content{
		"a": {Exports: []clustermesh.Export{honest}}, "b": {Exports: []clustermesh.Export{backdated}}, "c": {}, "d": {},
	}
	for name, c := range map[string]struct {
		seen   bool // by this node
		said   map[clustermesh.ClusterName]clustermesh.Late
		oldest clustermesh.ClusterName
	}{
		"no cluster has seen anything":     {false, nil, "b"},
		"this node has seen it":            {true, nil, "a"},
		"its leader says so":               {false, map[clustermesh.ClusterName]clustermesh.Late{"d": late}, "a"},
		"one other cluster says so":        {false, map[clustermesh.ClusterName]clustermesh.Late{"a": late}, "b"},
		"two others say so":                {false, map[clustermesh.ClusterName]clustermesh.Late{"a": late, "c": late}, "a"},
		"the liar accuses":                 {true, map[clustermesh.ClusterName]clustermesh.Late{"b": lie}, "a"},
		"two accuse, and the leader knows": {true, map[clustermesh.ClusterName]clustermesh.Late{"a": late, "c": late, "d": late}, "a"},
	} {
		s := stateOf(exports)
		for who, l := range c.said {
			r := s.Records.Get(clustermesh.Origin{Cluster: who})
			r.Content.Late = []clustermesh.Late{l}
			s.Records = s.Records.With(r.Origin, r)
		}
		if c.seen {
			r := s.Records.Get(clustermesh.Origin{Cluster: "b"})
			r.Late = []clustermesh.Late{late}
			s.Records = s.Records.With(r.Origin, r)
		}
		i, problems := clustermesh.Merge(s.Exports("d")[honest.Service])
		if i.Exporters[0] != c.oldest {
			t.Errorf("%s: the oldest is %s, want %s", name, i.Exporters[0], c.oldest)
		}
		told := slices.ContainsFunc(problems, func(p clustermesh.Problem) bool {
			return p.Object == "ServiceExport shop/cart of cluster b" && strings.Contains(p.Message, "1970-01-01 00:00:01")
		})
		if told != (c.oldest == "a") {
			t.Errorf("%s: problems %v", name, problems)
		}
		if got := s.Late("d"); (len(got) == 1 && got[0] == late) != (c.oldest == "a") {
			t.Errorf("%s: the leader says %v", name, got)
		}
	}
}

// TestNewcomer: what a cluster brings along counts from when it joined. The first two are equals.
func TestNewcomer(t *testing.T) {
	older, old := exportOf("cart", 1, clustermesh.Headless), exportOf("cart", 2, clustermesh.ClusterSetIP)
	for name, c := range map[string]struct {
		joined map[clustermesh.ClusterName]int64
		oldest clustermesh.ClusterName
	}{
		"no cluster knows when": {nil, "b"},
		"both at once":          {map[clustermesh.ClusterName]int64{"a": today, "b": today}, "b"},
		"b came later":          {map[clustermesh.ClusterName]int64{"a": today, "b": today + 1}, "a"},
		"a came later":          {map[clustermesh.ClusterName]int64{"a": today + 1, "b": today}, "b"},
	} {
		s := stateOf(map[clustermesh.ClusterName]clustermesh.Content{"a": {Exports: []clustermesh.Export{old}}, "b": {Exports: []clustermesh.Export{older}}})
		s.Joined = c.joined
		i, problems := clustermesh.Merge(s.Exports("a")[old.Service])
		told := slices.ContainsFunc(problems, func(p clustermesh.Problem) bool {
			return strings.Contains(p.Message, "in conflicts it counts from then on")
		})
		if i.Exporters[0] != c.oldest || told != (c.oldest == "a") {
			t.Errorf("%s: the oldest is %s, problems %v", name, i.Exporters[0], problems)
		}
		if got := s.Late("a"); len(got) > 0 {
			t.Errorf("%s: the leader says %v", name, got)
		}
	}
}

// TestLateAlone checks that a leader says nothing of an export that no other cluster has.
func TestLateAlone(t *testing.T) {
	e := exportOf("cart", 1, clustermesh.ClusterSetIP)
	s := stateOf(map[clustermesh.ClusterName]clustermesh.Content{"b": {Exports: []clustermesh.Export{e}}})
	r := s.Records.Get(clustermesh.Origin{Cluster: "b"})
	r.Late = []clustermesh.Late{{Cluster: "b", Service: e.Service, Created: 1, Since: today}}
	s.Records = s.Records.With(r.Origin, r)
	if got := s.Late("d"); len(got) != 0 {
		t.Errorf("got %v", got)
	}
}
