package daemon

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"strait.io/strait/clustermesh"
	"strait.io/strait/clustermesh/kube/mirrorer"
	"strait.io/strait/clustermesh/object"
	"strait.io/strait/clustermesh/policy"
	"strait.io/strait/clustermesh/policy/mirror"
	"strait.io/strait/clustermesh/record"
	"strait.io/strait/clustermesh/written"
)

// The ten runtime rules of ServicePolicies, on the way that a daemon's leader takes: objects of one
// cluster's API server → what it publishes → another leader's view → writes. What the writes do to an
// API server is played by a map; test/leader has real ones.

// set is the one that the daemon's mirrors have.
const ruleSet = "daemon"

// ruleWorld is some clusters, by name.
type ruleWorld struct {
	t        *testing.T
	clusters map[string]*ruleCluster
	policies []policy.Policy // every cluster has all
}

type ruleCluster struct {
	services   map[string]*corev1.Service // by namespace/name
	slices     map[string]*discoveryv1.EndpointSlice
	namespaces map[string]bool
	// away: the others do not hear it.
	away bool
	// content is that of its record, written what its leader last wrote, in order, and results the results.
	content clustermesh.Content
	written []string
	results []clustermesh.PolicyResult
	retired mirror.Retired
	taken   map[string]bool
	refuses string // a Service that the API server does not take
}

func newRules(t *testing.T, clusters ...string) *ruleWorld {
	w := &ruleWorld{t: t, clusters: map[string]*ruleCluster{}}
	for _, c := range clusters {
		w.clusters[c] = &ruleCluster{services: map[string]*corev1.Service{}, slices: map[string]*discoveryv1.EndpointSlice{}, namespaces: map[string]bool{"shop": true}}
	}
	return w
}

// serve creates a Service of the namespace shop, with pods.
func (w *ruleWorld) serve(cluster, name string, pods []string, change ...func(*corev1.Service)) {
	s := &corev1.Service{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: name, CreationTimestamp: metav1.Unix(1000, 0), Labels: map[string]string{"app": name}},
		Spec: corev1.ServiceSpec{ClusterIP: "10.96.0.9", Type: corev1.ServiceTypeClusterIP, Selector: map[string]string{"app": name}, Ports: []corev1.ServicePort{{Name: "http", Port: 80}}}}
	for _, f := range change {
		f(s)
	}
	w.clusters[cluster].services["shop/"+name] = s
	e := &discoveryv1.EndpointSlice{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: name + "-x", Labels: map[string]string{discoveryv1.LabelServiceName: name}},
		AddressType: discoveryv1.AddressTypeIPv4, Ports: []discoveryv1.EndpointPort{{Name: new("http"), Port: new(int32(8080)), Protocol: new(corev1.ProtocolTCP)}}}
	for _, pod := range pods {
		e.Endpoints = append(e.Endpoints, discoveryv1.Endpoint{Addresses: []string{pod}, Hostname: new("h" + pod[strings.LastIndex(pod, ".")+1:])})
	}
	w.clusters[cluster].slices["shop/"+name] = e
}

// policy gives every cluster a policy for the namespace shop, instead of one of its name.
func (w *ruleWorld) policy(name string, created int64, change ...func(*policy.Spec)) {
	p := policy.Policy{TypeMeta: policy.Type, ObjectMeta: metav1.ObjectMeta{Name: name, CreationTimestamp: metav1.Unix(created, 0)}, Spec: policy.Spec{
		From: []string{"*"}, To: []string{"*"}, Select: []policy.Term{{Namespaces: []string{"shop"}}}, As: policy.Mirror,
	}}
	for _, f := range change {
		f(&p.Spec)
	}
	if mistakes := policy.Validate(p); len(mistakes) > 0 {
		w.t.Fatal(mistakes)
	}
	w.policies = append(slices.DeleteFunc(w.policies, func(q policy.Policy) bool { return q.Name == name }), p)
}

// objects is what a daemon keeps of a cluster's API server.
func (w *ruleWorld) objects(cluster string) object.Objects {
	c, out := w.clusters[cluster], object.Objects{Config: object.Config{Cluster: clustermesh.ClusterName(cluster)}}
	insert := func(resource string, o metav1.Object) {
		i := slices.IndexFunc(object.Kinds, func(k object.Kind) bool { return k.Resource == resource })
		kept, ok := object.Kinds[i].Keep(o, "")
		if !ok {
			w.t.Fatalf("%s: %+v", resource, o)
		}
		out.Insert(kept)
	}
	for _, s := range c.services {
		insert(object.ServiceResource, s.DeepCopy())
	}
	for _, s := range c.slices {
		if s.Labels[discoveryv1.LabelManagedBy] != object.SliceManager { // see the row's Selector
			insert(object.SliceResource, s.DeepCopy())
		}
	}
	for i := range w.policies {
		insert(object.PolicyResource, w.policies[i].DeepCopyObject().(*policy.Policy))
	}
	return out
}

// pass lets every leader publish, and then every leader write once, at a time in seconds.
func (w *ruleWorld) pass(at int64) {
	s := clustermesh.State{Records: clustermesh.ByOrigin[clustermesh.Record]{}, Contacts: clustermesh.ByOrigin[clustermesh.Contact]{}}
	var members []clustermesh.ClusterName
	for name, c := range w.clusters {
		if !c.away {
			l := object.Local(w.objects(name))
			c.content = l.ClusterContent(nil, nil)
			c.content.Results = c.results
		}
		o := clustermesh.Origin{Cluster: clustermesh.ClusterName(name)}
		content, problems := record.Usable(o, c.content)
		if len(problems) > 0 {
			w.t.Fatal(problems)
		}
		s.Records = s.Records.With(o, clustermesh.Record{Origin: o, Content: content})
		node := clustermesh.Origin{Cluster: o.Cluster, Node: "n1"}
		if s.Contacts = s.Contacts.With(node, clustermesh.Alive); c.away {
			s.Contacts = s.Contacts.With(node, clustermesh.Quiet)
		}
		members = append(members, o.Cluster)
	}
	for name, c := range w.clusters {
		own := clustermesh.ClusterName(name)
		v := mirrorView(object.Taking(w.objects(name)), own, members, clustermesh.Local{Namespaces: slices.Collect(maps.Keys(c.namespaces))}, s)
		c.write(v, time.Unix(at, 0))
	}
}

// write does what a Mirrorer does. Like a user's API server, it has objects of others too; like a
// Mirrorer's watch, it does not show them.
func (c *ruleCluster) write(v mirrorer.View, now time.Time) {
	have := mirror.Cluster{ID: string(v.Cluster), Namespaces: v.Namespaces, Barred: v.Barred}
	for _, s := range c.services {
		if mirror.Ours(ruleSet, s.Labels) {
			have.Services = append(have.Services, s)
		}
	}
	for _, s := range c.slices {
		if mirror.Ours(ruleSet, s.Labels) {
			have.Slices = append(have.Slices, s)
		}
	}
	c.written = nil
	have.Taken = c.taken
	plan := mirror.Wanted(ruleSet, v.Policies, v.Clusters, have)
	skipped := plan.Skipped
	var uncreated written.Uncreated
	for _, o := range c.retired.Due(mirror.Diff(ruleSet, plan, have, v.Unknown), now) {
		switch {
		case uncreated.Blocks(o):
			continue
		case o.Kind == written.Namespace:
			c.namespaces[o.Object.GetName()] = true
		case o.Slice() != nil && o.Verb == written.Delete:
			delete(c.slices, o.Slice().Namespace+"/"+o.Slice().Name)
		case o.Slice() != nil:
			c.slices[o.Slice().Namespace+"/"+o.Slice().Name] = o.Slice()
		case o.Verb == written.Delete:
			delete(c.services, o.Service().Namespace+"/"+o.Service().Name)
		case o.Verb == written.Create && c.refuses == o.Service().Namespace+"/"+o.Service().Name:
			uncreated.Failed(o)
			continue
		case o.Verb == written.Create && c.services[o.Service().Namespace+"/"+o.Service().Name] != nil:
			skipped = append(skipped, mirror.Skipped{
				Policy: o.Service().Labels[mirror.LabelPolicy], Source: o.Service().Annotations[mirror.AnnotationFrom], Reason: policy.TargetExists,
			})
			uncreated.Failed(o)
			c.taken = map[string]bool{o.Service().Namespace + "/" + o.Service().Name: true}
			continue
		default:
			c.services[o.Service().Namespace+"/"+o.Service().Name] = o.Service()
		}
		c.written = append(c.written, o.String())
	}
	made := map[string]int{}
	for _, s := range c.services {
		if mirror.Ours(ruleSet, s.Labels) {
			made[s.Labels[mirror.LabelPolicy]]++
		}
	}
	c.results = mirror.Results(v.Policies, plan, made, skipped)
}

// has returns the mirrors of a cluster with the policies that made them and their addresses, sorted.
func (w *ruleWorld) has(cluster string) (out []string) {
	c := w.clusters[cluster]
	for name, s := range c.services {
		if !mirror.Ours(ruleSet, s.Labels) {
			continue
		}
		var addrs []string
		for _, e := range c.slices {
			if e.Namespace == s.Namespace && e.Labels[discoveryv1.LabelServiceName] == s.Name {
				for _, p := range e.Endpoints {
					addrs = append(addrs, p.Addresses...)
				}
			}
		}
		slices.Sort(addrs)
		out = append(out, fmt.Sprint(name, " by ", s.Labels[mirror.LabelPolicy], " ", addrs))
	}
	slices.Sort(out)
	return out
}

func (w *ruleWorld) expect(cluster string, want ...string) {
	w.t.Helper()
	if got := w.has(cluster); !slices.Equal(got, want) {
		w.t.Errorf("%s has %q, want %q", cluster, got, want)
	}
}

// skips returns what a cluster's leader leaves out by a policy, with its reasons.
func (w *ruleWorld) skips(cluster, by string) (out []string) {
	for _, r := range w.clusters[cluster].results {
		for _, s := range r.Skipped {
			if r.Policy == by {
				out = append(out, s.Reason+" "+s.Source)
			}
		}
	}
	return out
}

func (w *ruleWorld) expectSkips(cluster, by string, want ...string) {
	w.t.Helper()
	if got := w.skips(cluster, by); !slices.Equal(got, want) {
		w.t.Errorf("%s leaves out %q by %s, want %q", cluster, got, by, want)
	}
}

func named(template string) func(*policy.Spec) { return func(s *policy.Spec) { s.Name = template } }

func TestPolicyRule1_TheOlderPolicyWins(t *testing.T) {
	w := newRules(t, "c1", "c2")
	w.serve("c1", "cart", []string{"10.1.0.1"})
	w.policy("young", 20, func(s *policy.Spec) { s.ExposeAs = "NodePort" })
	w.policy("old", 10)
	w.pass(0)
	w.expect("c2", "shop/cart by old [10.1.0.1]")
	w.expectSkips("c2", "young", "Conflict c1/shop/cart")
	w.policy("young", 20)
	w.pass(0)
	w.expectSkips("c2", "young") // identical results are no conflict
}

func TestPolicyRule2_WhatIsNotOursIsNeverTouched(t *testing.T) {
	w := newRules(t, "c1", "c2")
	w.serve("c1", "cart", []string{"10.1.0.1"})
	for name, labels := range map[string]map[string]string{
		"a user's": nil, "strait's, but no mirror": {object.LabelManagedBy: object.ManagedBy}, "of strait replicate": {object.LabelManagedBy: object.ManagedBy, mirror.LabelSet: "default"},
	} {
		w.serve("c2", "cart", []string{"10.2.0.1"}, func(s *corev1.Service) { s.Labels = labels })
		theirs := w.clusters["c2"].services["shop/cart"].DeepCopy()
		w.policy("p", 10, func(s *policy.Spec) { s.To = []string{"c2"} })
		w.clusters["c2"].taken = nil
		for i := range int64(2) {
			w.pass(i)
			if now := w.clusters["c2"].services["shop/cart"]; now.String() != theirs.String() {
				t.Errorf("%s, pass %d: it is %v", name, i, now)
			}
			for _, s := range w.clusters["c2"].slices {
				if mirror.Ours(ruleSet, s.Labels) {
					t.Errorf("%s, pass %d: it gets endpoints: %v", name, i, s.Endpoints)
				}
			}
		}
		w.expectSkips("c2", "p", "TargetExists c1/shop/cart")
	}
}

// TestPolicyRule2_ANameIsTakenOver: a user's Service in the place of a mirror gets none of its endpoints.
func TestPolicyRule2_ANameIsTakenOver(t *testing.T) {
	w := newRules(t, "c1", "c2")
	w.serve("c1", "cart", []string{"10.1.0.1"})
	w.policy("p", 10, func(s *policy.Spec) { s.To = []string{"c2"} })
	w.pass(0)
	w.expect("c2", "shop/cart by p [10.1.0.1]")
	w.serve("c2", "cart", nil)
	w.pass(1)
	w.pass(2)
	for _, s := range w.clusters["c2"].slices {
		if mirror.Ours(ruleSet, s.Labels) {
			t.Errorf("it has the mirror's endpoints: %v", s.Endpoints)
		}
	}
	w.expectSkips("c2", "p", "TargetExists c1/shop/cart")
}

func TestPolicyRule3_NoLoops(t *testing.T) {
	w := newRules(t, "c1", "c2", "c3")
	w.serve("c1", "cart", []string{"10.1.0.1"})
	w.serve("c1", "pay-c9", []string{"10.9.0.1"}, func(s *corev1.Service) { s.Labels["mirror.linkerd.io/mirrored-service"] = "true" })
	w.policy("p", 10, named("{name}-{cluster}"))
	for i := range int64(4) {
		w.pass(i)
	}
	w.expect("c1")
	w.expect("c2", "shop/cart-c1 by p [10.1.0.1]")
	w.expect("c3", "shop/cart-c1 by p [10.1.0.1]")
}

func TestPolicyRule4_SeveralSourcesAreMerged(t *testing.T) {
	w := newRules(t, "c1", "c2", "c3")
	w.serve("c1", "cart", []string{"10.1.0.1"}, func(s *corev1.Service) { s.Labels["app"] = "young" })
	w.serve("c3", "cart", []string{"10.3.0.1"}, func(s *corev1.Service) {
		s.CreationTimestamp, s.Labels["app"] = metav1.Unix(500, 0), "old"
		s.Spec.Ports = append(s.Spec.Ports, corev1.ServicePort{Name: "admin", Port: 90})
	})
	w.policy("p", 10, func(s *policy.Spec) { s.To = []string{"c2"} })
	w.pass(0)
	w.expect("c2", "shop/cart by p [10.1.0.1 10.3.0.1]")
	if s := w.clusters["c2"].services["shop/cart"]; len(s.Spec.Ports) != 2 || s.Labels["app"] != "old" {
		t.Errorf("ports %v, labels %v", s.Spec.Ports, s.Labels)
	}
	w.policy("p", 10, func(s *policy.Spec) { s.To = []string{"c2"} }, named("{name}-{cluster}"))
	w.pass(1)
	w.pass(2)
	w.expect("c2", "shop/cart-c1 by p [10.1.0.1]", "shop/cart-c3 by p [10.3.0.1]")
}

func TestPolicyRule5_ALongNameIsLeftOut(t *testing.T) {
	w := newRules(t, "c1", "c2")
	w.serve("c1", "cart", []string{"10.1.0.1"})
	w.serve("c1", "a", []string{"10.1.0.2"})
	w.policy("p", 10, named("{name}-"+strings.Repeat("x", 59)))
	w.pass(0)
	w.expect("c2", "shop/a-"+strings.Repeat("x", 59)+" by p [10.1.0.2]")
	w.expectSkips("c2", "p", "InvalidName c1/shop/cart")
}

func TestPolicyRule6_Namespaces(t *testing.T) {
	for _, as := range []policy.As{policy.Mirror, policy.Import} {
		w := newRules(t, "c1", "c2")
		w.serve("c1", "cart", []string{"10.1.0.1"})
		w.clusters["c2"].namespaces = map[string]bool{"other": true}
		w.policy("p", 10, func(s *policy.Spec) { s.As = as })
		w.pass(0)
		w.expect("c2")
		w.expectSkips("c2", "p", "NamespaceMissing c1/shop/cart")
		w.clusters["c2"].namespaces["shop"] = true // a user creates it
		w.pass(1)
		w.expectSkips("c2", "p")

		w.clusters["c2"].namespaces = map[string]bool{"other": true}
		w.policy("p", 10, func(s *policy.Spec) { s.As, s.CreateNamespace = as, true })
		w.pass(2)
		w.expectSkips("c2", "p")
		if c := w.clusters["c2"]; !c.namespaces["shop"] || !slices.Contains(c.written, "create Namespace shop") {
			t.Errorf("%s: namespaces %v, written %q", as, c.namespaces, c.written)
		}
		w.policies = nil
		w.pass(3)
		w.expect("c2")
		if !w.clusters["c2"].namespaces["shop"] {
			t.Errorf("%s: the namespace went with the policy", as)
		}
	}
}

func TestPolicyRule7_UnknownIsNotEmpty(t *testing.T) {
	w := newRules(t, "c1", "c2")
	w.serve("c1", "cart", []string{"10.1.0.1"})
	w.policy("p", 10)
	w.pass(0)
	c1 := w.clusters["c1"]
	c1.away, c1.content = true, clustermesh.Content{} // as after a restart of c2's leader
	w.pass(1)
	w.expect("c2", "shop/cart by p [10.1.0.1]")
	c1.away = false
	delete(c1.services, "shop/cart")
	w.pass(2)
	w.expect("c2")
	w.serve("c1", "cart", []string{"10.1.0.1"})
	w.pass(3)
	w.expect("c2", "shop/cart by p [10.1.0.1]")
	w.policies = nil
	w.pass(4)
	w.expect("c2")
	w.policy("p", 10)
	w.pass(5)
	w.policy("p", 10, func(s *policy.Spec) { s.To = []string{"c3"} })
	w.pass(6)
	w.expect("c2")
}

func TestPolicyRule8_NewBeforeOld(t *testing.T) {
	w := newRules(t, "c1", "c2")
	w.serve("c1", "cart", []string{"10.1.0.1"})
	w.policy("p", 10)
	w.pass(0)
	w.policy("p", 10, named("{name}-{cluster}"))
	w.pass(1)
	w.expect("c2", "shop/cart by p [10.1.0.1]", "shop/cart-c1 by p [10.1.0.1]")
	w.pass(2)
	w.expect("c2", "shop/cart-c1 by p [10.1.0.1]")

	// The new one cannot be made: the old one waits for half a minute.
	w.clusters["c2"].refuses = "shop/far-cart"
	w.policy("p", 10, named("far-{name}"))
	w.pass(10)
	w.pass(39)
	w.expect("c2", "shop/cart-c1 by p [10.1.0.1]")
	w.pass(40)
	w.expect("c2")
	if len(w.clusters["c2"].slices) > 0 {
		t.Errorf("without a Service there are endpoints: %v", w.clusters["c2"].slices)
	}
	w.clusters["c2"].refuses = ""
	w.pass(41)
	w.expect("c2", "shop/far-cart by p [10.1.0.1]")
}

func TestPolicyRule9_Types(t *testing.T) {
	w := newRules(t, "c1", "c2")
	w.serve("c1", "cart", []string{"10.1.0.1"}, func(s *corev1.Service) {
		s.Spec.Type, s.Spec.Ports[0].NodePort, s.Spec.HealthCheckNodePort = corev1.ServiceTypeLoadBalancer, 30080, 31000
	})
	w.serve("c1", "db", []string{"10.1.0.2"}, func(s *corev1.Service) { s.Spec.ClusterIP = corev1.ClusterIPNone })
	w.serve("c1", "out", nil, func(s *corev1.Service) {
		s.Spec = corev1.ServiceSpec{Type: corev1.ServiceTypeExternalName, ExternalName: "example.org"}
	})
	w.policy("p", 10, func(s *policy.Spec) { s.To = []string{"c2"} })
	w.pass(0)
	c2 := w.clusters["c2"].services
	if s := c2["shop/cart"].Spec; s.Type != corev1.ServiceTypeClusterIP || s.Ports[0].NodePort != 0 || s.HealthCheckNodePort != 0 || s.Selector != nil {
		t.Errorf("of a LoadBalancer: %+v", s)
	}
	if s := c2["shop/db"].Spec; s.ClusterIP != corev1.ClusterIPNone {
		t.Errorf("of a headless Service: %+v", s)
	}
	for _, s := range w.clusters["c2"].slices {
		if s.Labels[discoveryv1.LabelServiceName] == "db" && *s.Endpoints[0].Hostname != "h2" {
			t.Errorf("hostname %v", s.Endpoints[0].Hostname)
		}
	}
	w.policy("p", 10, func(s *policy.Spec) { s.To, s.ExposeAs = []string{"c2"}, "NodePort" })
	w.pass(1)
	if cart, db := c2["shop/cart"].Spec, c2["shop/db"].Spec; cart.Type != corev1.ServiceTypeNodePort || db.Type != corev1.ServiceTypeClusterIP || db.ClusterIP != corev1.ClusterIPNone {
		t.Errorf("exposeAs: %+v, %+v", cart, db)
	}
}

// TestPolicyRule10_Status: what strait policy shows, and what the status of the object has, are the same:
// what is selected, made and left out, in the cluster and, for strait policy, in the others.
func TestPolicyRule10_Status(t *testing.T) {
	w := newRules(t, "c1", "c2")
	for i := range 25 {
		w.serve("c1", fmt.Sprintf("s%02d", i), []string{"10.1.0.1"})
		if i < 23 {
			w.serve("c2", fmt.Sprintf("s%02d", i), nil, func(s *corev1.Service) {
				s.Spec = corev1.ServiceSpec{Type: corev1.ServiceTypeExternalName, ExternalName: "x"}
			})
		}
	}
	w.policy("p", 10)
	w.pass(0)
	w.pass(1) // c1 hears what c2 has made
	s := clustermesh.State{Records: clustermesh.ByOrigin[clustermesh.Record]{}}
	for name, c := range w.clusters {
		s.Records = s.Records.With(clustermesh.Origin{Cluster: clustermesh.ClusterName(name)}, clustermesh.Record{Content: c.content})
	}
	objs := w.objects("c2")
	shares := object.Local(objs).Shares
	shown := policies(shares, s, "c2", true)[0]
	status, ok := object.PolicyFacts(objs, shares)[0].Status("c2", s.Records.Get(clustermesh.Origin{Cluster: "c2"}).Content.Results[0], time.Unix(0, 0))
	if !ok || status.Selected != 23 || status.Mirrored != 2 || shown.Selected != status.Selected || shown.Mirrored != status.Mirrored || shown.Shared != status.Shared {
		t.Errorf("status %+v, shown %+v", status, shown)
	}
	left := func(skipped, more int) int { return skipped + more }
	if n := left(len(status.Skipped), status.SkippedMore); n != 46 || len(status.Skipped) != 20 || left(len(shown.Skipped), shown.SkippedMore) != n {
		t.Errorf("%d are left out, %d of them named; shown are %d", n, len(status.Skipped), len(shown.Skipped))
	}
	elsewhere := policies(object.Local(w.objects("c1")).Shares, s, "c1", true)[0].Elsewhere
	if len(elsewhere) != 1 || elsewhere[0].Cluster != "c2" || elsewhere[0].Mirrored != 2 || elsewhere[0].Skipped[0].Service != "c1/shop/s00" || elsewhere[0].SkippedMore != 3 {
		t.Errorf("c1 knows of others: %+v", elsewhere)
	}
}
