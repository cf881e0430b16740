package gke

import (
	"slices"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	networkingv1 "k8s.io/api/networking/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"strait.io/strait/clustermesh/object"
	"strait.io/strait/clustermesh/written"
)

const (
	whereami = `
apiVersion: networking.gke.io/v1
kind: MultiClusterService
metadata: {name: whereami-mcs, namespace: whereami, uid: u1, generation: 3}
spec:
  template:
    spec:
      selector: {app: whereami}
      ports: [{name: web, protocol: TCP, port: 8080, targetPort: 8080}]
`
	front = `
apiVersion: networking.gke.io/v1
kind: MultiClusterIngress
metadata: {name: whereami-ingress, namespace: whereami, uid: u2, annotations: {strait.io/ingress-class: traefik}}
spec:
  template:
    spec: {backend: {serviceName: whereami-mcs, servicePort: 8080}}
`
	derived = "mci-whereami-mcs-svc-3n584bl95vub74kn"
)

// viewOf is what the leader of east knows when its cluster has the objects.
func viewOf(t *testing.T, texts ...string) View {
	t.Helper()
	objs := read(t, texts...)
	objs.Config.Cluster = "east"
	return View{Cluster: "east", GKE: object.ReadGKE(objs), Backend: func(name string, own bool) string {
		if own {
			return "own-" + name
		}
		return "derived-" + name
	}}
}

// world is an API server: it has what was written.
type world struct{ Have }

// settle carries out what Diff wants until it wants nothing, and returns all of it.
func (w *world) settle(t *testing.T, v View) (did []string) {
	t.Helper()
	for range 5 {
		ops := Diff(v, w.Have)
		if len(ops) == 0 {
			return did
		}
		for _, o := range ops {
			did = append(did, o.String())
			w.Services = carriedOut(w.Services, o.Service(), o.Verb)
			w.Ingresses = carriedOut(w.Ingresses, ingressOf(o), o.Verb)
		}
	}
	t.Fatalf("no end: %q", did)
	return nil
}

// ingressOf returns an operation's object if it is an Ingress, otherwise nil.
func ingressOf(o written.Op) *networkingv1.Ingress {
	i, _ := o.Object.(*networkingv1.Ingress)
	return i
}

func carriedOut[T interface {
	comparable
	metav1.Object
}](have []T, o T, verb written.Verb) []T {
	var none T
	if o == none {
		return have
	}
	have = slices.DeleteFunc(slices.Clone(have), func(h T) bool { return nameOf(h) == nameOf(o) })
	if verb != written.Delete {
		have = append(have, o)
	}
	return have
}

// TestDiff: what is written for the seed's own objects, and when they change.
func TestDiff(t *testing.T) {
	listing := strings.Replace(whereami, "spec:\n", "spec:\n  clusters: [{link: us/west}]\n", 1)
	var w world
	for _, c := range []struct {
		what    string
		objects []string
		want    []string
	}{
		{"the seed's", []string{front, whereami}, []string{"create Service whereami/" + derived, "create Ingress whereami/whereami-ingress"}},
		{"the same again", []string{front, whereami}, nil},
		{"another port", []string{front, strings.Replace(whereami, "targetPort: 8080", "targetPort: 80", 1)}, []string{"update Service whereami/" + derived}},
		{"another selector", []string{front, strings.Replace(whereami, "app: whereami", "app: x", 1)}, []string{"update Service whereami/" + derived}},
		// The Ingress leads to the other derived Service: this cluster has none of the import's
		// name.
		{"not listed", []string{front, listing}, []string{"update Ingress whereami/whereami-ingress", "delete Service whereami/" + derived}},
		{"listed again", []string{front, whereami}, []string{"create Service whereami/" + derived, "update Ingress whereami/whereami-ingress"}},
		{"another class", []string{strings.Replace(front, "traefik", "nginx", 1), whereami}, []string{"update Ingress whereami/whereami-ingress"}},
		{"a mistake", []string{front, strings.Replace(whereami, "selector:", "type: NodePort\n      selector:", 1)},
			[]string{"delete Ingress whereami/whereami-ingress", "delete Service whereami/" + derived}},
		{"corrected", []string{front, whereami}, []string{"create Service whereami/" + derived, "create Ingress whereami/whereami-ingress"}},
		{"no Ingress", []string{whereami}, []string{"delete Ingress whereami/whereami-ingress"}},
		{"nothing", nil, []string{"delete Service whereami/" + derived}},
	} {
		if did := w.settle(t, viewOf(t, c.objects...)); !slices.Equal(did, c.want) {
			t.Errorf("%s: %q, want %q", c.what, did, c.want)
		}
	}
}

// TestMade: both objects go with theirs, and the Ingress leads to the derived Service.
func TestMade(t *testing.T) {
	var w world
	w.settle(t, viewOf(t, whereami, front))
	s, i := w.Services[0], w.Ingresses[0]
	if s.Spec.ClusterIP != corev1.ClusterIPNone || s.Spec.Selector["app"] != "whereami" || s.Spec.Ports[0].TargetPort.IntVal != 8080 || !Ours(s.Labels) {
		t.Errorf("%+v", s)
	}
	if o := s.OwnerReferences; len(o) != 1 || o[0].APIVersion != "networking.gke.io/v1" || o[0].Kind != "MultiClusterService" || o[0].UID != "u1" {
		t.Errorf("owners of the Service: %v", o)
	}
	if o := i.OwnerReferences; len(o) != 1 || o[0].Kind != "MultiClusterIngress" || o[0].UID != "u2" || !Ours(i.Labels) {
		t.Errorf("owners of the Ingress: %v", o)
	}
	if b := i.Spec.DefaultBackend.Service; b.Name != "own-"+derived || b.Port.Number != 8080 || *i.Spec.IngressClassName != "traefik" {
		t.Errorf("%+v", i.Spec)
	}
	if Ours(map[string]string{object.LabelMultiService: "x"}) || Ours(map[string]string{object.LabelManagedBy: object.ManagedBy}) {
		t.Error("what others made is ours")
	}
}

// TestNoBackends: without a Service to lead to, no Ingress is made.
func TestNoBackends(t *testing.T) {
	v := viewOf(t, whereami, front)
	v.Backend = func(string, bool) string { return "" }
	var w world
	if did := w.settle(t, v); !slices.Equal(did, []string{"create Service whereami/" + derived}) {
		t.Errorf("%q", did)
	}
}

// TestFilledIn: what the API server fills in, and others add, is not written over.
func TestFilledIn(t *testing.T) {
	v := viewOf(t, whereami, strings.Replace(front, ", annotations: {strait.io/ingress-class: traefik}", "", 1))
	var w world
	w.settle(t, v)
	s, i := w.Services[0], w.Ingresses[0]
	s.Spec.IPFamilies, s.Spec.ClusterIPs, s.Spec.SessionAffinity = []corev1.IPFamily{"IPv4"}, []string{"None"}, "None"
	s.Labels["team"], s.Annotations = "x", map[string]string{"a": "b"}
	class := "the-default"
	i.Spec.IngressClassName = &class
	i.Annotations = map[string]string{"a": "b"}
	if ops := Diff(v, w.Have); len(ops) > 0 {
		t.Errorf("%v", ops)
	}
	s.OwnerReferences = nil
	if ops := Diff(v, w.Have); len(ops) != 1 || ops[0].Service() == nil || ops[0].Service().Labels["team"] != "x" || ops[0].Service().Spec.IPFamilies == nil {
		t.Errorf("without owner: %+v", ops)
	}
}

// TestStatuses: the condition of each object, and the address of an Ingress.
func TestStatuses(t *testing.T) {
	now := time.Unix(1000, 5).UTC()
	for what, c := range map[string]struct {
		objects []string
		change  func(*View, *Have, map[string]string)
		want    []string
	}{
		"in force": {objects: []string{whereami, front}, want: []string{
			"True InForce 3 Service whereami/" + derived + " selects pods of this cluster, east", "True InForce 0 Ingress whereami/whereami-ingress has the same rules"}},
		"not listed": {objects: []string{strings.Replace(whereami, "spec:\n", "spec:\n  clusters: [{link: us/west}]\n", 1)},
			want: []string{"True NotListed 3 spec.clusters does not list this cluster, east"}},
		"mistakes": {objects: []string{strings.Replace(whereami, "selector:", "type: NodePort\n      selector:", 1), front}, want: []string{
			`False Invalid 3 spec.template.spec.type: Forbidden: strait does not carry this out`,
			`False Invalid 0 spec.template.spec.backend.serviceName: Invalid value: "whereami-mcs": that MultiClusterService has mistakes`}},
		"a name is taken": {objects: []string{whereami, front}, change: func(_ *View, _ *Have, failed map[string]string) {
			failed["Service whereami/"+derived], failed["Ingress whereami/whereami-ingress"] = "taken", "taken too"
		}, want: []string{"False Failed 3 taken", "False Failed 0 taken too"}},
		"no derived Services": {objects: []string{whereami, front}, change: func(v *View, _ *Have, _ map[string]string) {
			v.Backend = func(string, bool) string { return "" }
		}, want: []string{"True InForce 3 Service whereami/" + derived + " selects pods of this cluster, east",
			"False NoBackends 0 clusterSetIPs of the daemon's configuration is cidr, so there is no Service that an Ingress can lead to"}},
		"an address": {objects: []string{whereami, front}, change: func(v *View, h *Have, _ map[string]string) {
			h.Ingresses = []*networkingv1.Ingress{{ObjectMeta: metav1.ObjectMeta{Namespace: "whereami", Name: "whereami-ingress"}, Status: networkingv1.IngressStatus{
				LoadBalancer: networkingv1.IngressLoadBalancerStatus{Ingress: []networkingv1.IngressLoadBalancerIngress{{}, {IP: "192.0.2.7"}}}}}}
		}, want: []string{"True InForce 3 Service whereami/" + derived + " selects pods of this cluster, east", "192.0.2.7 True InForce 0 Ingress whereami/whereami-ingress has the same rules"}},
	} {
		v, h, failed := viewOf(t, c.objects...), Have{}, map[string]string{}
		if c.change != nil {
			c.change(&v, &h, failed)
		}
		var got []string
		for _, s := range Statuses(v, h, failed, now) {
			k := s.Status.Conditions[0]
			text := strings.TrimSpace(s.Status.VIP + " " + string(k.Status) + " " + k.Reason)
			got = append(got, text+" "+string(rune('0'+k.ObservedGeneration))+" "+k.Message)
			if k.Type != Ready || !k.LastTransitionTime.Equal(&metav1.Time{Time: time.Unix(1000, 0)}) {
				t.Errorf("%s: %+v", what, k)
			}
		}
		if !slices.Equal(got, c.want) {
			t.Errorf("%s: %q, want %q", what, got, c.want)
		}
	}
}

// TestStatusesKeep: a status that is right is not written, and its time changes only with Ready.
func TestStatusesKeep(t *testing.T) {
	v := viewOf(t, whereami)
	first := Statuses(v, Have{}, nil, time.Unix(1000, 0))
	v.Services[0].Was = first[0].Status
	if again := Statuses(v, Have{}, nil, time.Unix(2000, 0)); len(again) > 0 {
		t.Errorf("written again: %+v", again)
	}
	v.Services[0].Generation = 4
	if next := Statuses(v, Have{}, nil, time.Unix(2000, 0)); len(next) != 1 || next[0].Status.Conditions[0].LastTransitionTime.Unix() != 1000 {
		t.Errorf("%+v", next)
	}
	if next := Statuses(v, Have{}, map[string]string{"Service whereami/" + derived: "no"}, time.Unix(2000, 0)); next[0].Status.Conditions[0].LastTransitionTime.Unix() != 2000 {
		t.Errorf("%+v", next)
	}
}
