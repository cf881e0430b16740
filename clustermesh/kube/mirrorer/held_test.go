package mirrorer

import (
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"strait.io/strait/clustermesh/written"
)

// TestHeld: a Service that cannot be created keeps its EndpointSlices from being written, and not those
// of others, nor from being deleted.
func TestHeld(t *testing.T) {
	service := func(name string) *corev1.Service {
		return &corev1.Service{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: name}}
	}
	slice := func(verb written.Verb, of string) written.Op {
		return written.Op{Verb: verb, Kind: written.EndpointSlice, Object: &discoveryv1.EndpointSlice{ObjectMeta: metav1.ObjectMeta{
			Namespace: "shop", Name: of + "-1", Labels: map[string]string{discoveryv1.LabelServiceName: of},
		}}}
	}
	var h Held
	if h.Back(slice(written.Create, "cart")) {
		t.Error("nothing has failed")
	}
	h.Failed(written.Op{Verb: written.Update, Kind: written.Service, Object: service("pay")})
	h.Failed(slice(written.Create, "pay"))
	h.Failed(written.Op{Verb: written.Create, Kind: written.Service, Object: service("cart")})
	for _, c := range []struct {
		op   written.Op
		want bool
	}{
		{slice(written.Create, "cart"), true}, {slice(written.Update, "cart"), true}, {slice(written.Delete, "cart"), false},
		{slice(written.Create, "pay"), false}, {written.Op{Verb: written.Create, Kind: written.Service, Object: service("cart")}, false}, {written.Op{Verb: written.Create, Kind: written.Namespace, Object: &corev1.Namespace{}}, false},
	} {
		if h.Back(c.op) != c.want {
			t.Errorf("%v: left out %v", c.op, !c.want)
		}
	}
}

// TestNames: a name that was taken is tried again after a while.
func TestNames(t *testing.T) {
	var m Mirrorer
	start := time.Unix(100, 0)
	m.meet(&corev1.Service{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "cart"}}, start)
	if got := m.names(start.Add(again - 1)); len(got) != 1 || !got["shop/cart"] {
		t.Errorf("%v", got)
	}
	if got := m.names(start.Add(again)); len(got) > 0 {
		t.Errorf("still %v", got)
	}
}
