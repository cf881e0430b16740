package object

import (
	"fmt"
	"reflect"
	"slices"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	mcsv1beta1 "sigs.k8s.io/mcs-api/pkg/apis/v1beta1"

	"strait.io/strait/clustermesh"
	"strait.io/strait/clustermesh/policy"
)

// shop is a cluster with three Services and some policies.
func shop(own string, policies ...*policy.Policy) Objects {
	objs := Objects{Config: Config{Cluster: clustermesh.ClusterName(own)}}
	for i, name := range []string{"cart", "front", "proxy"} {
		s := &corev1.Service{ObjectMeta: metav1.ObjectMeta{
			Namespace: "shop", Name: name, Labels: map[string]string{"app": name, "tier": "web", "kubernetes.io/x": "y"},
			CreationTimestamp: metav1.Unix(int64(100+i), 0),
		}, Spec: corev1.ServiceSpec{ClusterIP: fmt.Sprint("10.96.0.1", i), Ports: []corev1.ServicePort{{Name: "http", Port: 80}}}}
		if name == "proxy" {
			s.Spec = corev1.ServiceSpec{Type: corev1.ServiceTypeExternalName, ExternalName: "example.org"}
		}
		objs.Insert(serviceFrom(s))
	}
	for _, p := range policies {
		objs.Insert(policyFrom(p))
	}
	return objs
}

// sharing is a policy for all Services of the namespace shop.
func sharing(name string, created int64, change func(*policy.Spec)) *policy.Policy {
	p := &policy.Policy{ObjectMeta: metav1.ObjectMeta{Name: name, CreationTimestamp: metav1.Unix(created, 0)}, Spec: policy.Spec{
		From: []string{"east"}, To: []string{"*"}, Select: []policy.Term{{Namespaces: []string{"shop"}}},
	}}
	change(&p.Spec)
	return p
}

func names(list []clustermesh.ClusterName) string { return fmt.Sprint(list) }

// exportsOf shows exports as "cart to [west] by p at 100".
func exportsOf(l clustermesh.Local) (out []string) {
	for _, e := range l.Exports {
		out = append(out, strings.TrimSpace(fmt.Sprintf("%s to %v by %s at %d", e.Service.Name, names(e.To), e.Policy, e.Created)))
	}
	return out
}

// globalsOf shows a global service as whether it is shared, to whom, from whom, and how many addresses
// it has.
func globalsOf(l clustermesh.Local) (out string) {
	for _, g := range l.Globals {
		out += fmt.Sprintf("%v %s %s %d", g.Shared, names(g.To), names(g.From), len(g.IPs))
	}
	return out
}

func expect(t *testing.T, what string, got []string, want ...string) {
	t.Helper()
	if !slices.Equal(got, want) {
		t.Errorf("%s: %q, want %q", what, got, want)
	}
}

func TestPolicyExports(t *testing.T) {
	objs := shop("east", sharing("p", 50, func(s *policy.Spec) { s.To = []string{"west", "north"} }))
	l := Local(objs)
	expect(t, "exports", exportsOf(l), "cart to [north west] by p at 100", "front to [north west] by p at 101")
	want := []clustermesh.Share{{Policy: "p", As: "import", From: []clustermesh.ClusterName{"east"}, To: []clustermesh.ClusterName{"north", "west"},
		Selected: 3, Shared: 2, Skipped: []clustermesh.SkippedService{{Service: clustermesh.ServiceName{Namespace: "shop", Name: "proxy"},
			Reason: policy.ExternalName, Message: "its type is ExternalName, so it has no endpoints"}}}}
	if !reflect.DeepEqual(l.Shares, want) {
		t.Errorf("shares %+v", l.Shares)
	}
	if len(l.Problems) > 0 || len(l.ExportStatus) > 0 {
		t.Errorf("problems %v, status %v", l.Problems, l.ExportStatus)
	}
}

// A cluster shares nothing by a policy that is about others, or before its id is known.
func TestPolicyOfOthers(t *testing.T) {
	for _, own := range []string{"west", ""} {
		l := Local(shop(own, sharing("p", 50, func(s *policy.Spec) {})))
		expect(t, "exports of "+own, exportsOf(l))
	}
}

// A ServiceExport counts before a policy, and what several policies share goes to the clusters of all.
func TestPolicyAmongOthers(t *testing.T) {
	objs := shop("east",
		sharing("younger", 70, func(s *policy.Spec) { s.To = []string{"west"} }),
		sharing("older", 60, func(s *policy.Spec) { s.To = []string{"north"} }),
		sharing("labels", 80, func(s *policy.Spec) { s.To, s.Copy.Labels = []string{"*"}, []string{"tier"} }),
	)
	objs.Insert(exportFrom(&mcsv1beta1.ServiceExport{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "front", CreationTimestamp: metav1.Unix(10, 0)}}))
	l := Local(objs)
	expect(t, "exports", exportsOf(l), "cart to [north west] by older at 100", "front to [] by  at 10")
	if s := l.Shares[0]; s.Policy != "labels" || s.Shared != 1 || len(s.Skipped) != 2 || s.Skipped[0].Reason != policy.Conflict {
		t.Errorf("labels: %+v", s)
	}
}

func TestPolicyCopiesLabels(t *testing.T) {
	l := Local(shop("east", sharing("p", 50, func(s *policy.Spec) { s.Copy.Labels = []string{"tier", "kubernetes.io/*"} })))
	if want := map[string]string{"tier": "web", "kubernetes.io/x": "y"}; !reflect.DeepEqual(l.Exports[0].Labels, want) {
		t.Errorf("labels %v", l.Exports[0].Labels)
	}
}

// annotated gives the Service cart annotations.
func annotated(objs Objects, annotations map[string]string) Objects {
	objs.Services[0].annotations = annotations
	return objs
}

// TestPolicyCopiesAnnotations: an import and a mirror have those that the policy names, and no others.
// What a record cannot carry is named as left out.
func TestPolicyCopiesAnnotations(t *testing.T) {
	for _, as := range []policy.As{policy.Import, policy.Mirror} {
		p := sharing("p", 50, func(s *policy.Spec) { s.As, s.Copy.Annotations = as, []string{"team"} })
		l := Local(annotated(shop("east", p), map[string]string{"team": "blue", "other": "x"}))
		e := append(l.Exports, l.Mirrors...)[0]
		if want := map[string]string{"team": "blue"}; !reflect.DeepEqual(e.Annotations, want) {
			t.Errorf("%s: annotations %v", as, e.Annotations)
		}
		l = Local(annotated(shop("east", p), map[string]string{"team": strings.Repeat("x", 100_000)}))
		e = append(l.Exports, l.Mirrors...)[0]
		if s := l.Shares[0]; e.Annotations != nil || s.Shared != 2 || s.Skipped[0].Service.Name != "cart" || !strings.Contains(s.Skipped[0].Message, "without its annotations") {
			t.Errorf("%s: %d annotations, %+v", as, len(e.Annotations), s)
		}
	}
	kept := Kinds[slices.IndexFunc(Kinds, func(k Kind) bool { return k.Resource == ServiceResource })]
	k, _ := kept.Keep(&corev1.Service{ObjectMeta: metav1.ObjectMeta{Annotations: map[string]string{
		"team": "blue", corev1.LastAppliedConfigAnnotation: "{}", "strait.io/from": "c1/shop/cart", "service.strait.io/global": "true",
	}}}, "")
	if want := map[string]string{"team": "blue", "service.strait.io/global": "true"}; !reflect.DeepEqual(k.(*Service).annotations, want) {
		t.Errorf("kept %v", k.(*Service).annotations)
	}
}

// Machinery of strait and mirrors of other systems are no sources.
func TestPolicySelectsNoMirrors(t *testing.T) {
	objs := shop("east", sharing("p", 50, func(s *policy.Spec) { s.Select[0].Names = []string{"cart.*"} }))
	for name, label := range map[string]string{"cart-a": LabelManagedBy, "cart-b": "mirror.linkerd.io/mirrored-service"} {
		objs.Insert(serviceFrom(&corev1.Service{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: name, Labels: map[string]string{label: ManagedBy}},
			Spec: corev1.ServiceSpec{Ports: []corev1.ServicePort{{Port: 80}}}}))
	}
	expect(t, "exports", exportsOf(Local(objs)), "cart to [] by p at 100")
}

// All mistakes of a policy are reported, and it shares nothing; others do.
func TestPolicyMistakes(t *testing.T) {
	l := Local(shop("east",
		sharing("bad", 50, func(s *policy.Spec) { s.From, s.Select = nil, []policy.Term{{Names: []string{"("}}} }),
		sharing("good", 60, func(s *policy.Spec) { s.Select[0].Names = []string{"cart"} })))
	expect(t, "exports", exportsOf(l), "cart to [] by good at 100")
	var fields []string
	for _, p := range l.Problems {
		fields = append(fields, p.Object+" "+p.Field)
	}
	expect(t, "problems", fields, "ServicePolicy bad spec.from", "ServicePolicy bad spec.select[0].names[0]")
}

// TestPolicyJoins: who provides shares its endpoints, who consumes gets others', and both name whom.
func TestPolicyJoins(t *testing.T) {
	join := func(from, to []string) *policy.Policy {
		return sharing("p", 50, func(s *policy.Spec) {
			s.As, s.From, s.To, s.Select[0].Names = policy.Join, from, to, []string{"cart"}
		})
	}
	for _, c := range []struct {
		what     string
		from, to []string
		want     string
	}{
		{"provider", []string{"east"}, []string{"west"}, "true [west] [] 0"},
		{"consumer", []string{"north", "west"}, []string{"east"}, "false [] [north west] 1"},
		{"both", []string{"east", "west"}, []string{"*"}, "true [] [east west] 1"},
		{"all", []string{"*"}, []string{"*"}, "true [] [] 1"},
		{"neither", []string{"west"}, []string{"north"}, ""},
	} {
		l := Local(shop("east", join(c.from, c.to)))
		if got := globalsOf(l); got != c.want {
			t.Errorf("%s: %s, want %s", c.what, got, c.want)
		}
	}
	l := Local(shop("east", join([]string{"east"}, []string{"west"}), sharing("q", 60, func(s *policy.Spec) {
		s.As, s.From, s.To, s.Select[0].Names = policy.Join, []string{"north"}, []string{"east"}, []string{"cart"}
	})))
	if g := l.Globals[0]; !g.Shared || names(g.To) != "[west]" || names(g.From) != "[north]" || len(g.IPs) != 1 || g.Policy != "p" {
		t.Errorf("two policies: %+v", g)
	}
}

// Policies of the daemon's configuration count as those of the source, and before one of the same name.
func TestPolicyOfConfiguration(t *testing.T) {
	objs := shop("east", sharing("p", 50, func(s *policy.Spec) { s.To = []string{"north"} }))
	p := sharing("p", 0, func(s *policy.Spec) { s.To = []string{"west"} })
	p.CreationTimestamp = metav1.Time{}
	objs.Config.Policies = []policy.Policy{*p}
	l := Local(objs)
	expect(t, "exports", exportsOf(l), "cart to [west] by p at 100", "front to [west] by p at 101")
	if len(l.Problems) != 1 || l.Problems[0].Object != "ServicePolicy p" || len(l.Shares) != 1 {
		t.Errorf("problems %v, shares %+v", l.Problems, l.Shares)
	}
}

// What a policy mirrors is no export: it is offered, with the labels to copy, and its endpoints are published.
func TestPolicyMirrors(t *testing.T) {
	objs := shop("east", sharing("m", 50, func(s *policy.Spec) { s.As, s.To = policy.Mirror, []string{"west"} }))
	l := Local(objs)
	expect(t, "exports", exportsOf(l))
	var got []string
	for _, e := range l.Mirrors {
		got = append(got, fmt.Sprintf("%s to %s by %s at %d %v", e.Service.Name, names(e.To), e.Policy, e.Created, e.Labels))
	}
	expect(t, "mirrors", got, "cart to [west] by m at 100 map[app:cart tier:web]", "front to [west] by m at 101 map[app:front tier:web]")
	if len(Taking(objs)) != 0 || len(Taking(shop("west", sharing("m", 50, func(s *policy.Spec) { s.As = policy.Mirror })))) != 1 {
		t.Error("who gets mirrors")
	}
	if l.Shares[0].Shared != 2 || len(l.Problems) > 0 {
		t.Errorf("shares %+v, problems %v", l.Shares, l.Problems)
	}
	objs.Config.Cluster, objs.Config.ReadOnly = "west", true
	if l := Local(objs); len(l.Problems) != 1 || l.Problems[0].Field != "spec.as" {
		t.Errorf("without an API server: %v", l.Problems)
	}
}

// TestTaking: a cluster makes objects by the policies whose spec.to has it, the oldest first, as they say.
func TestTaking(t *testing.T) {
	to := func(c string, as policy.As) func(*policy.Spec) {
		return func(s *policy.Spec) { s.To, s.As, s.CreateNamespace = []string{c}, as, as == policy.Import }
	}
	all := func(s *policy.Spec) {
		s.As, s.CreateNamespace, s.ExposeAs, s.Name, s.Copy.Annotations = policy.Mirror, true, "NodePort", "{name}-{cluster}", []string{"team"}
	}
	var got []string
	for _, p := range Taking(shop("west", sharing("b", 60, to("west", policy.Import)), sharing("a", 70, all), sharing("j", 1, to("west", policy.Join)),
		sharing("n", 2, to("north", policy.Mirror)), sharing("bad", 3, func(s *policy.Spec) { s.As, s.Endpoints = policy.Join, policy.ClusterIP }))) {
		got = append(got, fmt.Sprint(p.Name, " ", p.Spec.As, " ", p.Spec.CreateNamespace, " ", p.Spec.ExposeAs, " ", p.Spec.Name, " ", p.Spec.Copy.Annotations))
	}
	expect(t, "policies", got, "b import true ClusterIP {name} []", "a mirror true NodePort {name}-{cluster} [team]")
}

// TestPolicySaysClusterIPs: a cluster says its ClusterIPs where a policy leads to them, and nowhere else.
func TestPolicySaysClusterIPs(t *testing.T) {
	for endpoints, want := range map[policy.Endpoints]string{policy.ClusterIP: "[10.96.0.10] [10.96.0.11] ", "": "[] [] "} {
		l := Local(shop("east", sharing("m", 50, func(s *policy.Spec) { s.As, s.Endpoints = policy.Mirror, endpoints })))
		got := ""
		for _, e := range l.Mirrors {
			got += fmt.Sprint(e.IPs, " ")
		}
		if got != want || len(l.Problems) > 0 {
			t.Errorf("endpoints %q: %q, want %q; problems %v", endpoints, got, want, l.Problems)
		}
	}
}

// TestPolicyFacts: what a status needs is known of each ServicePolicy object, and of no other policy.
func TestPolicyFacts(t *testing.T) {
	in, bad, shadowed := sharing("p", 1, func(*policy.Spec) {}), sharing("bad", 1, func(s *policy.Spec) { s.To = nil }), sharing("both", 1, func(*policy.Spec) {})
	in.ResourceVersion, in.Generation, in.Status.Selected = "9", 3, 7
	objs := shop("east", in, bad, shadowed)
	configured := sharing("both", 0, func(*policy.Spec) {})
	configured.TypeMeta = policy.Type
	objs.Config.Policies = []policy.Policy{*configured}
	alias := policyFrom(in)
	alias.kind = karmadaKind
	objs.Insert(alias)
	got := PolicyFacts(objs, Local(objs).Shares)
	if len(got) != 3 {
		t.Fatalf("%+v", got)
	}
	if f := got[0]; f.Name != "p" || f.Version != "9" || f.Generation != 3 || f.Was.Selected != 7 || f.Spec.As != policy.Import || f.Share == nil || f.Share.Selected != 3 {
		t.Errorf("%+v", f)
	}
	if f := got[1]; f.Name != "bad" || len(f.Mistakes) != 1 || f.Share != nil {
		t.Errorf("%+v", f)
	}
	if f := got[2]; f.Name != "both" || !f.Configured || f.Share != nil {
		t.Errorf("%+v", f)
	}
}
