package written

import (
	"testing"

	"k8s.io/apimachinery/pkg/labels"
)

// TestRows: every row is complete, and no object is in two rows that end differently.
func TestRows(t *testing.T) {
	marks := map[string]bool{}
	for _, r := range Rows {
		if err := r.Check(); err != nil {
			t.Error(err)
		}
		selector, err := labels.Parse(r.Labels)
		if err != nil {
			t.Fatal(err)
		}
		if mark := r.Kind + " " + selector.String(); marks[mark] {
			t.Errorf("two rows of %s", mark)
		} else {
			marks[mark] = true
		}
	}
}

// TestCheck: a row that lacks something is refused.
func TestCheck(t *testing.T) {
	whole := Row{Kind: Service, Resource: resource("", "v1", "services"), By: GKE, Labels: byStrait, End: Deleted}
	if err := whole.Check(); err != nil {
		t.Fatal(err)
	}
	for what, spoil := range map[string]func(*Row){
		"no kind":               func(r *Row) { r.Kind = "" },
		"no resource":           func(r *Row) { r.Resource.Resource = "" },
		"no writer":             func(r *Row) { r.By = "" },
		"no end":                func(r *Row) { r.End = "" },
		"an unknown end":        func(r *Row) { r.End = "burnt" },
		"labels that are none":  func(r *Row) { r.Labels = "a in" },
		"no labels":             func(r *Row) { r.Labels = "" },
		"labels of others":      func(r *Row) { r.End = Released },
		"names and labels":      func(r *Row) { r.Names = []string{"a"} },
		"no names":              func(r *Row) { r.End = Named },
		"left without a reason": func(r *Row) { r.End = Left },
		"deleted with a reason": func(r *Row) { r.Why = "it stays" },
	} {
		r := whole
		spoil(&r)
		if r.Check() == nil {
			t.Errorf("%s: the row is accepted", what)
		}
	}
}
