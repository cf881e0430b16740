package written

import (
	"testing"

	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// TestUncreated: a Service that cannot be created keeps its EndpointSlices from being written, and not those
// of others, nor from being deleted.
func TestUncreated(t *testing.T) {
	service := func(name string) *corev1.Service {
		return &corev1.Service{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: name}}
	}
	slice := func(verb Verb, of string) Op {
		return Op{Verb: verb, Kind: EndpointSlice, Object: &discoveryv1.EndpointSlice{ObjectMeta: metav1.ObjectMeta{
			Namespace: "shop", Name: of + "-1", Labels: map[string]string{discoveryv1.LabelServiceName: of},
		}}}
	}
	var u Uncreated
	if u.Blocks(slice(Create, "cart")) {
		t.Error("nothing has failed")
	}
	u.Failed(Op{Verb: Update, Kind: Service, Object: service("pay")})
	u.Failed(slice(Create, "pay"))
	u.Failed(Op{Verb: Create, Kind: Service, Object: service("cart")})
	for _, c := range []struct {
		op   Op
		want bool
	}{
		{slice(Create, "cart"), true}, {slice(Update, "cart"), true}, {slice(Delete, "cart"), false},
		{slice(Create, "pay"), false}, {Op{Verb: Create, Kind: Service, Object: service("cart")}, false}, {Op{Verb: Create, Kind: Namespace, Object: &corev1.Namespace{}}, false},
	} {
		if u.Blocks(c.op) != c.want {
			t.Errorf("%v: left out %v", c.op, !c.want)
		}
	}
}
