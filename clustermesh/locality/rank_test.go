package locality_test

import (
	"os"
	"slices"
	"strings"
	"testing"

	"strait.io/strait/clustermesh"
	"strait.io/strait/clustermesh/locality"
)

// column returns the first column of the table under a header, whose first cell is given.
func column(t *testing.T, file, header string) (out []string) {
	t.Helper()
	text, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	in := false
	for line := range strings.Lines(string(text)) {
		line = strings.Trim(strings.TrimPrefix(strings.TrimSpace(line), "//"), "\t |\n")
		cell, _, is := strings.Cut(line, "|")
		switch cell = strings.TrimSpace(cell); {
		case !is || strings.HasPrefix(cell, "---"):
			in = in && is
		case strings.EqualFold(cell, header):
			in = true
		case in:
			out = append(out, cell)
		}
	}
	return out
}

// sameTable checks that the package comment and the page list the same, in the same order.
func sameTable(t *testing.T, header string, page map[string]string) []string {
	t.Helper()
	rows := column(t, "locality.go", header)
	var want []string
	for _, r := range rows {
		if other := page[r]; other != "" {
			r = other
		}
		want = append(want, r)
	}
	if got := column(t, "../../docs/locality.md", header); len(rows) == 0 || !slices.Equal(got, want) {
		t.Errorf("%s: the page has %q, the package comment %q", header, got, want)
	}
	return rows
}

// TestClasses: what the table of classes says of each, against each that comes after it.
func TestClasses(t *testing.T) {
	of := map[string]func(*locality.Candidate){
		"healthy":     func(*locality.Candidate) {},
		"impaired":    func(c *locality.Candidate) { c.Fault, c.Impaired = "carries no packets of 1420 bytes", true },
		"drained":     drainedBy("cluster", 1),
		"unreachable": silent,
		"terminating": terminating,
		"unusable":    notReady,
	}
	rows := sameTable(t, "class", nil)
	if len(rows) != len(of) {
		t.Fatalf("the table has %q, the test %d classes", rows, len(of))
	}
	for i, better := range rows {
		if of[better] == nil {
			t.Fatalf("the table has a class %q", better)
		}
		for _, worse := range rows[i+1:] {
			in := []locality.Candidate{cand("a", "n2", "r1", "z1", of[worse]), cand("b", "n9", "r9", "z9", of[better])}
			if got := show(shares(locality.Select(self, in, spills, locality.Ramp{}))); got != "b=100.0" {
				t.Errorf("%s far away, %s nearby: %s", better, worse, got)
			}
		}
		alone := []locality.Candidate{cand("b", "n9", "r9", "z9", of[better])}
		got := show(shares(locality.Select(self, alone, spills, locality.Ramp{})))
		if want := map[bool]string{true: "", false: "b=100.0"}[better == "unusable"]; got != want {
			t.Errorf("%s alone: %q, want %q", better, got, want)
		}
	}
}

// TestRanks: each row of the table of ranks decides, whatever the rows below say.
func TestRanks(t *testing.T) {
	// Cluster c is the nearest by one row, and d by all rows below. Both are far from cluster a.
	type row struct {
		c, d func(*locality.Candidate, *locality.Preference)
	}
	place := func(region, zone string) func(*locality.Candidate, *locality.Preference) {
		return func(c *locality.Candidate, _ *locality.Preference) {
			c.Locality = clustermesh.Locality{Region: region, Zone: zone}
		}
	}
	// The side of d is this cluster's, which affinity remote puts last.
	own := func(c *locality.Candidate, p *locality.Preference) {
		c.Cluster, p.Affinity = "a", clustermesh.AffinityRemote
	}
	prefers := func(c clustermesh.ClusterName) func(*locality.Candidate, *locality.Preference) {
		return func(_ *locality.Candidate, p *locality.Preference) { p.Prefer = []clustermesh.ClusterName{c} }
	}
	weighs := func(c string) func(*locality.Candidate, *locality.Preference) {
		return func(_ *locality.Candidate, p *locality.Preference) { p.Weights = weights(c + "=1") }
	}
	costs := func(c clustermesh.ClusterName) func(*locality.Candidate, *locality.Preference) {
		return func(_ *locality.Candidate, p *locality.Preference) {
			p.Costs = map[clustermesh.ClusterName]uint32{c: 9}
		}
	}
	nothing := func(*locality.Candidate, *locality.Preference) {}
	of := map[string]row{
		"preferred": {prefers("c"), nothing},
		"weighted":  {weighs("c"), weighs("d")},
		"side":      {nothing, own},
		"tier":      {place("r1", "z7"), place("r1", "z1")},
		"cost":      {costs("d"), costs("c")},
	}
	rows := sameTable(t, "rank", map[string]string{"preferred": "preferred cluster", "weighted": "weight"})
	if len(rows) != len(of) {
		t.Fatalf("the table has %q, the test %d ranks", rows, len(of))
	}
	for i, name := range rows {
		r, known := of[name]
		if !known {
			t.Fatalf("the table has a rank %q", name)
		}
		c, d := cand("c", "n7", "r7", "z7"), cand("d", "n8", "r8", "z8")
		p := locality.Preference{Tiers: clustermesh.TierNames}
		for _, below := range rows[i+1:] {
			if below != "side" { // only the own cluster is another side
				of[below].d(&d, &p)
			}
		}
		switch r.c(&c, &p); name {
		case "side":
			own(&d, &p)
		case "tier":
			place("r8", "z8")(&d, &p)
		}
		if got := show(shares(locality.Select(self, []locality.Candidate{d, c}, p, locality.Ramp{}))); got != "c=100.0" {
			t.Errorf("%s is for c, and all below for d: %s", name, got)
		}
	}
}
