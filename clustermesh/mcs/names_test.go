package mcs

import (
	"slices"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	mcsv1beta1 "sigs.k8s.io/mcs-api/pkg/apis/v1beta1"

	"strait.io/strait/clustermesh"
	"strait.io/strait/clustermesh/object"
	"strait.io/strait/clustermesh/written"
)

func theirs(name string) *corev1.Service {
	return &corev1.Service{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: name, UID: "theirs"}}
}

// rounds applies operations for some rounds, whether they come to an end or not, and returns the last Problems.
func (w *world) rounds(v View, n int) (problems []clustermesh.Problem) {
	w.t.Helper()
	for range n {
		var ops []written.Op
		ops, problems = Diff(v, serve, w.have(serve), start)
		for _, o := range ops {
			w.apply(o)
		}
	}
	return problems
}

func TestDerivedService_ForeignNameIsLeftAlone(t *testing.T) {
	w := newWorld(t)
	w.services["default/derived-serve"] = theirs("derived-serve")
	v := viewOf(exportOf("c2", 1)).change(pod("c2", "10.2.0.1", 80))
	problems := w.rounds(v, 6)
	c := condition(w.imports["default/serve"].Status.Conditions, "Ready")
	if c.Status != metav1.ConditionFalse || !strings.Contains(c.Message, "derived-serve") {
		t.Errorf("Ready: %+v", c)
	}
	if len(problems) != 1 || problems[0].Try == "" {
		t.Errorf("problems %v", problems)
	}
	if got := derivedAddrs(w); len(got) != 0 {
		t.Errorf("endpoints of ours in another writer's Service: %v", got)
	}
	// What is not wanted any more goes all the same, though the Service is tried again and again.
	ops, _ := Diff(viewOf(exportOf("c2", 1)), serve, w.have(serve), start)
	if len(ops) < 2 || ops[len(ops)-1].Verb != written.Create || ops[len(ops)-2].Verb != written.Delete {
		t.Errorf("operations %v: want the deletion before what will fail", ops)
	}
	// A Service that has the label but is not the one is ours too many: it goes.
	w = newWorld(t)
	w.services["default/stray"] = &corev1.Service{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "stray", UID: "s",
		Labels: map[string]string{object.LabelManagedBy: "helm", object.LabelServiceImport: "serve"}}}
	w.settle(v, serve)
	if w.services["default/stray"] == nil {
		t.Error("deleted a Service that is not ours")
	}
}

func TestDerivedNames_FitAndTellApart(t *testing.T) {
	long := strings.Repeat("x", 62)
	for _, c := range []struct {
		prefix *string
		name   string
		want   []string // a hash at the end is #
	}{
		{nil, "serve", []string{"derived-serve"}},
		{new("mc-"), "serve", []string{"mc-serve"}},
		{new(""), "serve", []string{"serve", "derived-serve"}},
		{new(""), "1st", []string{"derived-1st"}},
		{nil, strings.Repeat("x", 55), []string{"derived-" + strings.Repeat("x", 55)}},
		{nil, long, []string{"derived-" + long[:44] + "-#"}},
		{new(""), long, []string{long, "derived-" + long[:44] + "-#"}},
		{new(""), long + "xy", []string{long[:52] + "-#", "derived-" + long[:44] + "-#"}},
		{new("a" + strings.Repeat("-", maxPrefix-1)), long, []string{"a" + strings.Repeat("-", maxPrefix-1) + "x-#"}},
	} {
		got := Config{DerivedPrefix: c.prefix}.derivedNames(c.name)
		for i, n := range got {
			if at := len(n) - hashSize; i < len(c.want) && strings.HasSuffix(c.want[i], "#") && n[at:] == hash(c.name) {
				got[i] = n[:at] + "#"
			}
			if len(n) > 63 {
				t.Errorf("%s is too long", n)
			}
		}
		if !slices.Equal(got, c.want) {
			t.Errorf("%s: %v, want %v", c.name, got, c.want)
		}
	}
	for prefix, ok := range map[string]bool{
		"": true, "derived-": true, "a": true, strings.Repeat("a", maxPrefix): true,
		strings.Repeat("a", maxPrefix+1): false, "-": false, "1-": false, "A": false, "a.": false, "a_": false,
	} {
		if err := CheckPrefix(prefix); (err == nil) != ok {
			t.Errorf("prefix %q: %v", prefix, err)
		}
	}
}

// derived returns the derived Services that the import and the slices name.
func derived(w *world) string {
	out := "import: " + w.imports["default/serve"].Annotations[DerivedAnnotation]
	for _, s := range w.have(serve).Services {
		if slices.Equal(w.imports["default/serve"].Spec.IPs, s.Spec.ClusterIPs) {
			out += " by " + s.Name
		}
		out += ", Service " + s.Name
	}
	for _, s := range w.have(serve).Slices {
		if s.Derived != "" {
			out += ", slice of " + s.Derived
		}
	}
	return out
}

func TestDerivedPrefix_Configured(t *testing.T) {
	empty := new("")
	owned := func(v View) View {
		v = v.judge(clustermesh.ExportStatus{Service: serve, Reason: "NoService"})
		return v
	}
	v := func() View { return viewOf(exportOf("c2", 1)).change(pod("c2", "10.2.0.1", 80)) }
	with := func(v View, prefix *string) View {
		v.Config.DerivedPrefix = prefix
		return v
	}
	const plain, prefixed = "import: serve by serve, Service serve, slice of serve", "import: derived-serve by derived-serve, Service derived-serve, slice of derived-serve"
	for name, c := range map[string]struct {
		theirs string // a Service of another writer
		views  []View
		want   string
		trials int // Creates of Services
	}{
		"another":                  {views: []View{with(v(), new("mc-"))}, want: strings.ReplaceAll(plain, "serve", "mc-serve"), trials: 1},
		"none":                     {views: []View{with(v(), empty)}, want: plain, trials: 1},
		"none, the name is taken":  {theirs: "serve", views: []View{with(v(), empty), with(v(), empty)}, want: prefixed, trials: 2},
		"none, here it is too":     {views: []View{owned(with(v(), empty))}, want: prefixed, trials: 1},
		"none, later here too":     {views: []View{with(v(), empty), owned(with(v(), empty))}, want: prefixed, trials: 2},
		"changed":                  {views: []View{v(), with(v(), empty)}, want: plain, trials: 2},
		"changed back":             {views: []View{with(v(), empty), v()}, want: prefixed, trials: 2},
		"changed, no exports left": {views: []View{v(), with(viewOf(exportOf("c2", 1)), empty)}, want: "import: serve by serve, Service serve", trials: 2},
		"changed, name is taken":   {theirs: "serve", views: []View{v(), with(v(), empty)}, want: prefixed, trials: 2},
		"changed while one is not known": {views: []View{v(), func() View {
			v := with(viewOf(exportOf("c3", 1)), empty)
			v.Clusters["c2"] = Unknown
			return v
		}()}, want: prefixed, trials: 1},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t)
			if c.theirs != "" {
				w.services["default/"+c.theirs] = theirs(c.theirs)
			}
			trials := 0
			for _, v := range c.views {
				for _, o := range w.settle(v, serve) {
					if o.Verb == written.Create && o.Service() != nil {
						trials++
					}
				}
			}
			if got := derived(w); got != c.want || trials != c.trials {
				t.Errorf("%s; tried %d Services, want %s and %d", got, trials, c.want, c.trials)
			}
			if c.theirs != "" && w.services["default/"+c.theirs].UID != "theirs" {
				t.Error("another writer's Service was touched")
			}
			if i := w.imports["default/serve"]; condition(i.Status.Conditions, "Ready").Status != metav1.ConditionTrue {
				t.Errorf("status %+v", i.Status)
			}
		})
	}
}

// At every moment the addresses of the import are those of a Service with endpoints.
func TestDerivedPrefix_MakeBeforeBreak(t *testing.T) {
	w := newWorld(t)
	v := viewOf(exportOf("c2", 1)).change(pod("c2", "10.2.0.1", 80))
	w.settle(v, serve)
	v.Config.DerivedPrefix = new("")
	for {
		ops, _ := Diff(v, serve, w.have(serve), start)
		if len(ops) == 0 {
			break
		}
		for _, o := range ops {
			w.apply(o)
			i := w.imports["default/serve"]
			s := w.services["default/"+i.Annotations[DerivedAnnotation]]
			if s == nil || !slices.Equal(s.Spec.ClusterIPs, i.Spec.IPs) || !served(w, s.Name) {
				t.Fatalf("after %s: import %+v, Service %+v", o, i.Spec, s)
			}
		}
	}
	if got := derived(w); got != "import: serve by serve, Service serve, slice of serve" {
		t.Error(got)
	}
}

func served(w *world, service string) bool {
	for _, s := range w.slices {
		if s.Labels[discoveryv1.LabelServiceName] == service && len(s.Endpoints) > 0 {
			return true
		}
	}
	return false
}

// While the name that it is to have is taken by another writer, the derived Service that is there is kept up to date.
func TestDerivedPrefix_NewNameIsTaken(t *testing.T) {
	w := newWorld(t)
	v := viewOf(exportOf("c2", 1)).change(pod("c2", "10.2.0.1", 80))
	w.settle(v, serve)
	before := w.imports["default/serve"].Spec.IPs
	w.services["default/mc-serve"] = theirs("mc-serve")
	v = viewOf(exportOf("c2", 1, func(e *clustermesh.Export) { e.AffinitySeconds = 7 })).change(pod("c2", "10.2.0.2", 80))
	v.Config.DerivedPrefix = new("mc-")
	problems := w.rounds(v, 8)
	i := w.imports["default/serve"]
	if len(problems) != 1 || !strings.Contains(problems[0].Message, "mc-serve") || !slices.Equal(i.Spec.IPs, before) ||
		condition(i.Status.Conditions, "Ready").Status != metav1.ConditionTrue {
		t.Errorf("problems %v, import %+v", problems, i)
	}
	if s := w.services["default/derived-serve"]; s.Spec.SessionAffinity != corev1.ServiceAffinityClientIP || !slices.Equal(derivedAddrs(w), []string{"10.2.0.2"}) {
		t.Errorf("Service %+v, endpoints %v", s.Spec, derivedAddrs(w))
	}
	delete(w.services, "default/mc-serve")
	w.settle(v, serve)
	if got := derived(w); got != "import: mc-serve by mc-serve, Service mc-serve, slice of mc-serve" {
		t.Errorf("when the name is free: %s", got)
	}
}

func TestDerivedPrefix_OfAUsersImport(t *testing.T) {
	w := newWorld(t)
	w.imports["default/serve"] = &mcsv1beta1.ServiceImport{
		ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "serve", UID: "u", Generation: 1},
		Spec:       mcsv1beta1.ServiceImportSpec{Type: mcsv1beta1.ClusterSetIP, Ports: []mcsv1beta1.ServicePort{{Port: 80, Protocol: "TCP"}}},
	}
	v := viewOf(exportOf("c2", 1)).change(pod("c2", "10.2.0.1", 80))
	w.settle(v, serve)
	v = viewOf()
	v.Config.DerivedPrefix = new("") // and no cluster exports any more
	w.settle(v, serve)
	if got := derived(w); got != "import: serve by serve, Service serve" {
		t.Error(got)
	}
}
