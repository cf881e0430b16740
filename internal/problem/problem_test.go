package problem_test

import (
	"slices"
	"testing"

	"strait.io/strait/internal/problem"
)

func TestString(t *testing.T) {
	for want, p := range map[string]problem.Problem{
		"broken":                           {Message: "broken"},
		"node c/n: broken":                 {Object: "node c/n", Message: "broken"},
		"node c/n: ports: broken; mend it": {Object: "node c/n", Field: "ports", Message: "broken", Try: "mend it"},
		"a.yaml: Service s: broken":        {Object: "Service s", File: "a.yaml", Message: "broken"},
	} {
		if got := p.String(); got != want {
			t.Errorf("%+v reads %q, want %q", p, got, want)
		}
	}
}

func TestFinding(t *testing.T) {
	p := problem.Problem{Object: "node c/n", Field: "ports", Message: "broken", Try: "mend it"}
	if got := p.Finding(); got != "node c/n: ports: broken" {
		t.Errorf("%q", got)
	}
	if got := p.Severity(); got != "error" {
		t.Errorf("severity %q", got)
	}
	if p.Warning = true; p.Severity() != "warning" {
		t.Errorf("severity %q", p.Severity())
	}
}

func TestSort(t *testing.T) {
	late := problem.Problem{Object: "a", Message: "1", Warning: true}
	first := problem.Problem{Object: "a", Message: "2"}
	second := problem.Problem{Object: "b", Field: "f", Message: "1"}
	effect := problem.Problem{Code: problem.SeedSilent, Object: "a", Message: "1"}
	cause := problem.Problem{Code: problem.GossipKeyDiffers, Object: "z", Message: "1"}
	between := problem.Problem{Code: problem.ClusterHeld, Object: "m", Message: "1"}
	given := []problem.Problem{late, effect, second, between, first, second, cause}
	if got, want := problem.Sort(given), []problem.Problem{first, second, cause, between, effect, late}; !slices.Equal(got, want) {
		t.Errorf("sorted %v, want %v", got, want)
	}
	if given[0] != late {
		t.Error("Sort changed the list that it was given")
	}
}
