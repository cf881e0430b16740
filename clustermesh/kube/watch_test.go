package kube

import (
	"slices"
	"testing"

	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	mcsv1beta1 "sigs.k8s.io/mcs-api/pkg/apis/v1beta1"

	"strait.io/strait/clustermesh/object"
)

func watchOf(name string) *watch { return New(Config{Node: "n1", Client: idle()}).watches[name] }

// names are those of the objects that a watch holds.
func names(w *watch) (out []string) {
	w.mu.Lock()
	defer w.mu.Unlock()
	for _, o := range w.objects {
		out = append(out, o.GetNamespace()+"/"+o.GetName())
	}
	return out
}

// Only a change of what strait reads of an object wakes it.
func TestWatchNews(t *testing.T) {
	plain := func(name string, edits ...func(*corev1.Service)) *corev1.Service {
		s := &corev1.Service{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: name}, Spec: corev1.ServiceSpec{ClusterIP: "10.96.0.1",
			Ports: []corev1.ServicePort{{Name: "http", Port: 80}}}}
		for _, edit := range edits {
			edit(s)
		}
		return s
	}
	derived := func(s *corev1.Service) {
		s.Labels = map[string]string{object.LabelManagedBy: object.ManagedBy, object.LabelServiceImport: "x"}
	}
	for _, c := range []struct {
		what     string
		old, new *corev1.Service
		news     bool
	}{
		{"the same", plain("a"), plain("a"), false},
		{"metadata", plain("a"), plain("a", func(s *corev1.Service) {
			s.ResourceVersion, s.Annotations = "2", map[string]string{"kubectl.kubernetes.io/a": "1"}
		}), false},
		{"labels", plain("a"), plain("a", func(s *corev1.Service) { s.Labels = map[string]string{"l": "1"} }), true},
		{"target port", plain("a"), plain("a", func(s *corev1.Service) { s.Spec.Ports[0].TargetPort.IntVal = 1 }), false},
		{"status", plain("a"), plain("a", func(s *corev1.Service) { s.Status.LoadBalancer.Ingress = make([]corev1.LoadBalancerIngress, 1) }), false},
		{"port", plain("a"), plain("a", func(s *corev1.Service) { s.Spec.Ports[0].Port = 81 }), true},
		{"port of a derived Service", plain("a", derived), plain("a", derived, func(s *corev1.Service) { s.Spec.Ports[0].Port = 81 }), false},
		{"address", plain("a", derived), plain("a", derived, func(s *corev1.Service) { s.Spec.ClusterIP = "10.96.0.2" }), true},
		{"second address", plain("a"), plain("a", func(s *corev1.Service) { s.Spec.ClusterIPs = []string{"10.96.0.1", "fd00::1"} }), true},
		{"type", plain("a"), plain("a", func(s *corev1.Service) { s.Spec.Type = corev1.ServiceTypeExternalName }), true},
		{"policy", plain("a"), plain("a", func(s *corev1.Service) { s.Spec.InternalTrafficPolicy = new(corev1.ServiceInternalTrafficPolicyLocal) }), true},
		{"annotation", plain("a"), plain("a", func(s *corev1.Service) { s.Annotations = map[string]string{"io.cilium/global-service": "true"} }), true},
		{"an annotation to copy", plain("a"), plain("a", func(s *corev1.Service) { s.Annotations = map[string]string{"a": "1"} }), true},
		{"derived now", plain("a"), plain("a", derived), true},
		{"another", plain("a"), plain("b"), true},
	} {
		w := watchOf(object.ServiceResource)
		must(t, w.Add(c.old))
		if _, news := w.look(); !news {
			t.Errorf("%s: the first is no news", c.what)
		}
		must(t, w.Update(c.new))
		if _, news := w.look(); news != c.news {
			t.Errorf("%s: news %v", c.what, news)
		}
	}
}

// A watch holds what was added or changed since the last list, and nothing else.
func TestWatchHolds(t *testing.T) {
	at := func(ns, name string) *mcsv1beta1.ServiceExport {
		return &mcsv1beta1.ServiceExport{ObjectMeta: metav1.ObjectMeta{Namespace: ns, Name: name}}
	}
	w := watchOf(object.ExportResource)
	must(t, w.Add(at("gone", "gone")))
	if w.state().synced {
		t.Error("synced without a list")
	}
	must(t, w.Replace([]any{at("b", "1"), at("a", "2"), at("a", "1")}, "7"))
	w.look()
	must(t, w.Delete(at("a", "3")))
	if _, news := w.look(); news {
		t.Error("the end of an unknown object is news")
	}
	must(t, w.Delete(at("a", "2")))
	must(t, w.Add(at("aa", "0")))
	must(t, w.Update(at("b", "1")))
	if got := names(w); !slices.Equal(got, []string{"a/1", "aa/0", "b/1"}) || !w.state().synced {
		t.Errorf("holds %q", got)
	}
	if w.Add(struct{}{}) == nil {
		t.Error("something without a name is no error")
	}
}

// A long list comes through the Transformer and by Replace, a short one by Replace alone: it is the same, and slices with
// other nodes' endpoints alone are not kept.
func TestWatchSlices(t *testing.T) {
	slice := func(name string, nodes ...string) *discoveryv1.EndpointSlice {
		s := &discoveryv1.EndpointSlice{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: name, Labels: map[string]string{discoveryv1.LabelServiceName: "x"}},
			AddressType: "IPv4"}
		for _, n := range nodes {
			s.Endpoints = append(s.Endpoints, discoveryv1.Endpoint{Addresses: []string{"10.0.0.1"}, NodeName: &n})
		}
		return s
	}
	all := func() []any {
		nameless, host := slice("nameless", "n2"), slice("host", "n2")
		nameless.Labels, host.AddressType = nil, "FQDN"
		imported := slice("imported", "n1")
		imported.Labels[mcsv1beta1.LabelServiceName] = "x"
		return []any{slice("theirs", "n2", "n3"), slice("ours", "n2", "n1"), slice("nobody's", ""), slice("empty"), nameless, host, imported}
	}
	for _, long := range []bool{false, true} {
		w := watchOf(object.SliceResource)
		list := all()
		for i := range list {
			var err error
			if long {
				list[i], err = w.Transformer()(list[i])
			}
			must(t, err)
		}
		must(t, w.Replace(list, "1"))
		want := []string{"default/host", "default/nameless", "default/nobody's", "default/ours"}
		if got := names(w); !slices.Equal(got, want) {
			t.Errorf("long %v: kept %q, want %q", long, got, want)
		}
		must(t, w.Update(slice("ours", "n2")))
		must(t, w.Update(slice("theirs", "n1")))
		want = []string{"default/host", "default/nameless", "default/nobody's", "default/theirs"}
		if got := names(w); !slices.Equal(got, want) {
			t.Errorf("long %v: after updates kept %q, want %q", long, got, want)
		}
	}
}
