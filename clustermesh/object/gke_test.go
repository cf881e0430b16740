package object

import (
	"fmt"
	"reflect"
	"slices"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"strait.io/strait/clustermesh"
	"strait.io/strait/clustermesh/record"
)

func gkeObject(kind, name string, spec map[string]any) *unstructured.Unstructured {
	return &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": "networking.gke.io/v1", "kind": kind, "metadata": map[string]any{"namespace": "shop", "name": name}, "spec": spec,
	}}
}

func templated(spec map[string]any) map[string]any {
	return map[string]any{"template": map[string]any{"spec": spec}}
}

func multiService(spec map[string]any) *unstructured.Unstructured {
	return gkeObject("MultiClusterService", "cart", spec)
}

func multiIngress(spec map[string]any) *unstructured.Unstructured {
	return gkeObject("MultiClusterIngress", "front", spec)
}

var selecting = templated(map[string]any{
	"selector": map[string]any{"app": "cart"}, "ports": []any{map[string]any{"name": "web", "port": int64(80), "targetPort": int64(8080)}},
})

func backend(service string, port any) map[string]any {
	return templated(map[string]any{"backend": map[string]any{"serviceName": service, "servicePort": port}})
}

// with returns a spec with one more field.
func with(spec map[string]any, value any, path ...string) map[string]any {
	out := (&unstructured.Unstructured{Object: spec}).DeepCopy().Object
	if err := unstructured.SetNestedField(out, value, path...); err != nil {
		panic(err)
	}
	return out
}

func linking(links ...string) map[string]any {
	var list []any
	for _, l := range links {
		list = append(list, map[string]any{"link": l})
	}
	return with(selecting, list, "clusters")
}

func annotatedWith(o *unstructured.Unstructured, key, value string) *unstructured.Unstructured {
	o.SetAnnotations(map[string]string{key: value})
	return o
}

// derivedOf is the headless Service that strait makes for shop/cart.
func derivedOf(labels map[string]string) *corev1.Service {
	return &corev1.Service{
		ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: DerivedName("shop", "cart"), Labels: labels},
		Spec:       corev1.ServiceSpec{ClusterIP: corev1.ClusterIPNone, Ports: []corev1.ServicePort{{Name: "web", Port: 80}}},
	}
}

var derivedLabels = map[string]string{LabelManagedBy: ManagedBy, LabelMultiService: "cart"}

// TestMultiService: which pods a MultiClusterService offers in which clusters, and what it asks for
// that is not carried out.
func TestMultiService(t *testing.T) {
	zoned := corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: "n1", Labels: map[string]string{"topology.kubernetes.io/region": "us", "topology.kubernetes.io/zone": "us-b"}},
		Status: corev1.NodeStatus{Addresses: []corev1.NodeAddress{{Type: corev1.NodeInternalIP, Address: "172.31.1.1"}}}, Spec: corev1.NodeSpec{PodCIDRs: []string{"10.1.1.0/24"}}}
	for what, c := range map[string]struct {
		in       *unstructured.Unstructured
		derived  *corev1.Service
		want     string
		problems []string
	}{
		"all clusters":       {in: multiService(selecting), want: "ClusterSetIP [web:80/TCP]"},
		"listed":             {in: multiService(linking("us-b/east", "eu/west")), want: "ClusterSetIP [web:80/TCP]"},
		"listed by region":   {in: multiService(linking("us/east")), want: "ClusterSetIP [web:80/TCP]"},
		"listed in full":     {in: multiService(linking("projects/p/locations/us/clusters/east")), want: "ClusterSetIP [web:80/TCP]"},
		"another cluster":    {in: multiService(linking("us/west"))},
		"another location":   {in: multiService(linking("eu/east")), want: "ClusterSetIP [web:80/TCP]", problems: []string{"spec.clusters[0].link"}},
		"no cluster":         {in: multiService(linking("us/")), problems: []string{"spec.clusters[0].link"}},
		"no Service yet":     {in: multiService(selecting), derived: &corev1.Service{ObjectMeta: metav1.ObjectMeta{Name: "x", Namespace: "shop"}}},
		"another's Service":  {in: multiService(selecting), derived: derivedOf(map[string]string{LabelManagedBy: "Helm", LabelMultiService: "cart"})},
		"another's label":    {in: multiService(selecting), derived: derivedOf(map[string]string{LabelManagedBy: ManagedBy, LabelMultiService: "other"})},
		"no selector":        {in: multiService(with(selecting, map[string]any{}, "template", "spec", "selector")), problems: []string{"spec.template.spec.selector"}},
		"no ports":           {in: multiService(with(selecting, []any{}, "template", "spec", "ports")), problems: []string{"spec.template.spec.ports"}},
		"no spec":            {in: multiService(nil), problems: []string{"spec.template.spec.ports", "spec.template.spec.selector"}},
		"a wrong type":       {in: multiService(with(selecting, "x", "template", "spec", "selector")), problems: []string{"spec", "spec.template.spec.ports", "spec.template.spec.selector"}},
		"type":               {in: multiService(with(selecting, "NodePort", "template", "spec", "type")), problems: []string{"spec.template.spec.type"}},
		"affinity and more":  {in: multiService(with(with(selecting, "ClientIP", "template", "spec", "sessionAffinity"), int64(1), "more")), problems: []string{"spec.more", "spec.template.spec.sessionAffinity"}},
		"labels of template": {in: multiService(with(selecting, map[string]any{"a": "b"}, "template", "metadata", "labels")), problems: []string{"spec.template.metadata"}},
		"nodePort":           {in: multiService(with(selecting, []any{map[string]any{"port": int64(80), "nodePort": int64(30000)}}, "template", "spec", "ports")), problems: []string{"spec.template.spec.ports[0].nodePort"}},
		"backend-config":     {in: annotatedWith(multiService(selecting), "cloud.google.com/backend-config", `{"default": "iap"}`), problems: []string{"metadata.annotations[cloud.google.com/backend-config]"}},
		"beta backend":       {in: annotatedWith(multiService(selecting), "beta.cloud.google.com/backend-config", `{}`), problems: []string{"metadata.annotations[beta.cloud.google.com/backend-config]"}},
		"protocol":           {in: annotatedWith(multiService(selecting), annotationProtocols, `{"web": "HTTP2"}`), want: "ClusterSetIP [web:80/TCP]"},
		"unknown protocol":   {in: annotatedWith(multiService(selecting), annotationProtocols, `{"web": "SPDY"}`), problems: []string{"metadata.annotations[networking.gke.io/app-protocols]"}},
		"protocol of none":   {in: annotatedWith(multiService(selecting), annotationProtocols, `{"x": "HTTP"}`), problems: []string{"metadata.annotations[networking.gke.io/app-protocols]"}},
		"protocols, no JSON": {in: annotatedWith(multiService(selecting), annotationProtocols, `web=HTTP`), problems: []string{"metadata.annotations[networking.gke.io/app-protocols]"}},
	} {
		objs := Objects{Config: Config{Cluster: "east"}}
		objs.Insert(nodeFrom(&zoned))
		if c.derived == nil {
			c.derived = derivedOf(derivedLabels)
		}
		objs.Insert(serviceFrom(c.derived))
		objs.Insert(multiServiceFrom(c.in))
		l := Local(objs)
		got := ""
		for _, e := range l.Exports {
			got += fmt.Sprint(e.Type, " ", e.Ports)
		}
		if fields := fieldsOf(l.Problems, gkeServiceKind+" shop/cart"); got != c.want || !slices.Equal(fields, c.problems) {
			t.Errorf("%s: exports %q, problems with %q; want %q and %q", what, got, fields, c.want, c.problems)
		}
		if _, problems := record.Usable(clustermesh.Origin{Cluster: "east"}, clustermesh.Content{Exports: l.Exports}); len(problems) > 0 {
			t.Errorf("%s: other clusters leave it out: %v", what, problems)
		}
	}
}

func fieldsOf(problems []clustermesh.Problem, object string) (out []string) {
	for _, p := range problems {
		if p.Object == object {
			out = append(out, p.Field)
		}
	}
	slices.Sort(out)
	return out
}

// TestMultiServicePorts: what the headless Service gets.
func TestMultiServicePorts(t *testing.T) {
	s := multiServiceFrom(annotatedWith(multiService(with(selecting, []any{
		map[string]any{"name": "web", "port": int64(80), "targetPort": "http"}, map[string]any{"name": "dns", "port": int64(53), "protocol": "UDP"},
	}, "template", "spec", "ports")), annotationProtocols, `{"web": "HTTPS"}`))
	var got []string
	for _, p := range s.Ports {
		got = append(got, fmt.Sprint(p.Name, p.Port, p.Protocol, p.TargetPort.String(), deref(p.AppProtocol, "")))
	}
	if want := []string{"web80TCPhttphttps", "dns53UDP53"}; !slices.Equal(got, want) || len(s.Mistakes) > 0 {
		t.Errorf("ports %q, mistakes %v", got, s.Mistakes)
	}
}

// TestMultiServiceRouting: a MultiClusterService says where connections go, as an export does.
func TestMultiServiceRouting(t *testing.T) {
	objs := Objects{Config: Config{Cluster: "east"}}
	objs.Insert(serviceFrom(derivedOf(derivedLabels)))
	objs.Insert(multiServiceFrom(annotatedWith(multiService(selecting), AnnotationLocality, "clusterset")))
	if e := Local(objs).Exports; len(e) != 1 || e[0].Routing == nil || len(e[0].Routing.Tiers) != 1 || e[0].Policy != "shop/cart" {
		t.Errorf("exports %+v", e)
	}
}

// TestMultiServiceBarred: a barred namespace offers nothing by it.
func TestMultiServiceBarred(t *testing.T) {
	objs := Objects{Config: Config{Cluster: "east", BarredPatterns: []string{"shop"}}}
	objs.Insert(serviceFrom(derivedOf(derivedLabels)))
	objs.Insert(multiServiceFrom(multiService(selecting)))
	if l := Local(objs); len(l.Exports) > 0 || !slices.Equal(fieldsOf(l.Problems, gkeServiceKind+" shop/cart"), []string{"metadata.namespace"}) {
		t.Errorf("exports %v, problems %v", l.Exports, l.Problems)
	}
}

// TestMultiServiceExported: a ServiceExport of the headless Service counts, and there is one
// export.
func TestMultiServiceExported(t *testing.T) {
	objs := Objects{Config: Config{Cluster: "east"}}
	objs.Insert(serviceFrom(derivedOf(derivedLabels)))
	objs.Insert(multiServiceFrom(multiService(selecting)))
	objs.Insert(&Export{ID: ID{"shop", DerivedName("shop", "cart")}})
	if e := Local(objs).Exports; len(e) != 1 || e[0].Type != clustermesh.Headless {
		t.Errorf("exports %+v", e)
	}
}

// TestGKENames: what is made for an object has its name as a label.
func TestGKENames(t *testing.T) {
	for name, bad := range map[string]bool{strings.Repeat("x", 63): false, strings.Repeat("x", 64): true, "a.b": true} {
		for _, g := range []GKEObject{
			multiServiceFrom(gkeObject("MultiClusterService", name, selecting)).GKEObject, multiIngressFrom(gkeObject("MultiClusterIngress", name, backend("cart", "web"))).GKEObject,
		} {
			if has := len(g.Mistakes) > 0 && g.Mistakes[0].Field == "metadata.name"; has != bad {
				t.Errorf("%s %s: mistakes %v", g.Kind, name, g.Mistakes)
			}
		}
	}
}

// TestDerivedName: it fits, depends on namespace and name only, and keeps long names apart.
func TestDerivedName(t *testing.T) {
	long := strings.Repeat("x", 60)
	seen := map[string]bool{}
	for _, n := range [][2]string{{"shop", "cart"}, {"shop", "cart2"}, {"sho", "pcart"}, {"shop", long + "a"}, {"shop", long + "b"}} {
		name := DerivedName(n[0], n[1])
		if !IsServiceName(name) || seen[name] || !strings.HasPrefix(name, "mci-") {
			t.Errorf("%v: %q", n, name)
		}
		seen[name] = true
	}
	// What was made by an older build is found again.
	if got := DerivedName("whereami", "whereami-mcs"); got != "mci-whereami-mcs-svc-3n584bl95vub74kn" {
		t.Errorf("%q", got)
	}
}

// FuzzGKE: whatever an object of networking.gke.io says, reading it ends, and what has no mistake
// can be made.
func FuzzGKE(f *testing.F) {
	for _, o := range []*unstructured.Unstructured{multiService(linking("us/east")), multiIngress(rules("/x/*")), multiIngress(backend("cart", "web"))} {
		text, err := o.MarshalJSON()
		if err != nil {
			f.Fatal(err)
		}
		f.Add(text, `{"web": "HTTP2"}`)
	}
	f.Fuzz(func(t *testing.T, text []byte, protocols string) {
		var o unstructured.Unstructured
		if o.UnmarshalJSON(text) != nil {
			return
		}
		objs := Objects{Config: Config{Cluster: "east"}}
		objs.Insert(multiServiceFrom(annotatedWith(o.DeepCopy(), annotationProtocols, protocols)))
		objs.Insert(multiIngressFrom(&o))
		l := Local(objs)
		// What is carried means the same elsewhere.
		elsewhere := Objects{Config: Config{Cluster: "west"}}
		for _, k := range ReadConfig(clustermesh.ClusterConfig{Cluster: "east", Objects: l.Config}) {
			elsewhere.Insert(k)
		}
		for _, s := range ReadGKE(elsewhere).Services {
			if was := ReadGKE(objs).Service(s.Namespace, s.Name); !reflect.DeepEqual(s.Ports, was.Ports) ||
				fmt.Sprint(s.Mistakes, s.Selector, s.links, s.routing) != fmt.Sprint(was.Mistakes, was.Selector, was.links, was.routing) {
				t.Errorf("%+v was %+v", s, was)
			}
		}
		all := ReadGKE(objs)
		if i := all.Ingresses[0]; len(i.Mistakes) == 0 {
			for _, r := range i.Standard(all, func(MultiService) string { return "derived" }).Rules {
				if r.HTTP != nil && !strings.HasPrefix(fmt.Sprint(r.HTTP.Paths[0].Backend.Service.Name), "derived") {
					t.Errorf("leads to %v", r.HTTP.Paths[0].Backend.Service)
				}
			}
		}
	})
}
