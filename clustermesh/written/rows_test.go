package written

import (
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	mcsv1beta1 "sigs.k8s.io/mcs-api/pkg/apis/v1beta1"

	"strait.io/strait/clustermesh/object"
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

// TestCovers: what uninstalling would not find is refused.
func TestCovers(t *testing.T) {
	service := func(labels map[string]string) *corev1.Service {
		return &corev1.Service{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "cart", Labels: labels}}
	}
	ours := map[string]string{object.LabelManagedBy: object.ManagedBy, object.LabelServiceImport: "cart"}
	for what, c := range map[string]struct {
		op   Op
		want bool
	}{
		"a derived Service":               {Op{Verb: Create, Kind: Service, Object: service(ours)}, true},
		"a Service without labels":        {Op{Verb: Create, Kind: Service, Object: service(nil)}, false},
		"a Service that loses its labels": {Op{Verb: Update, Kind: Service, Object: service(nil)}, false},
		"the end of a Service":            {Op{Verb: Delete, Kind: Service, Object: service(nil)}, true},
		"a mirror of strait replicate": {Op{Verb: Create, Kind: Service, Object: service(map[string]string{
			object.LabelManagedBy: object.ManagedBy, object.LabelPolicySet: "mine",
		})}, false},
		"a status of a user's object":       {Op{Verb: ApplyStatus, Kind: ServiceExport, Object: &mcsv1beta1.ServiceExport{}}, true},
		"an object where only fields count": {Op{Verb: Create, Kind: ServiceExport, Object: &mcsv1beta1.ServiceExport{}}, false},
		"a kind without a row":              {Op{Verb: Delete, Kind: "Widget", Object: service(nil)}, false},
	} {
		if err := Covers(c.op); (err == nil) != c.want {
			t.Errorf("%s: %v", what, err)
		}
	}
}
