package mirror_test

import (
	"fmt"
	"net/netip"
	"slices"
	"testing"

	corev1 "k8s.io/api/core/v1"

	"strait.io/strait/clustermesh"
	"strait.io/strait/clustermesh/policy"
	"strait.io/strait/clustermesh/policy/mirror"
	"strait.io/strait/clustermesh/written"
	"strait.io/strait/internal/l4"
)

// many is the record of a cluster that shares so many Services, each with two endpoints.
func many(services int) clustermesh.State {
	var c clustermesh.Content
	for i := range services {
		s := clustermesh.ServiceName{Namespace: "shop", Name: fmt.Sprint("s-", i)}
		c.Mirrors = append(c.Mirrors, clustermesh.Export{Service: s, Type: clustermesh.ClusterSetIP, Policy: "shop", Created: 1,
			Ports: []clustermesh.ServicePort{{Name: "http", Proto: l4.TCP, Port: 80}}})
		for e := range 2 {
			c.Endpoints = append(c.Endpoints, clustermesh.Endpoint{Service: s, Addr: netip.AddrFrom4([4]byte{10, byte(e), byte(i >> 8), byte(i)}), Ready: true, Serving: true,
				Ports: []clustermesh.EndpointPort{{Name: "http", Proto: l4.TCP, Port: 8080}}})
		}
	}
	o := clustermesh.Origin{Cluster: "c1"}
	return clustermesh.State{Records: clustermesh.NewByOrigin(map[clustermesh.Origin]clustermesh.Record{o: {Origin: o, Content: c}})}
}

// pass is the leader's work of one pass, up to the writes.
func pass(s clustermesh.State, ps []policy.Policy, to mirror.Cluster) []written.Op {
	p := mirror.Wanted(set, ps, []mirror.Cluster{mirror.Offer(s, "c1", "c2", nil)}, to)
	return mirror.Diff(set, p, to, known)
}

// TestWritesAtScale: 5,000 Services take a Service and a slice each, a change of one endpoint one slice, and
// no change nothing.
func TestWritesAtScale(t *testing.T) {
	const services = 5000
	s, ps := many(services), []policy.Policy{mirroring("shop")}
	to := cluster("c2")
	ops := pass(s, ps, to)
	if len(ops) != 2*services {
		t.Fatalf("%d writes for %d new mirrors", len(ops), services)
	}
	for _, o := range ops { // apply would look for each among all
		if o.Service() != nil {
			to.Services = append(to.Services, defaulted(o.Service().DeepCopy()))
		} else {
			to.Slices = append(to.Slices, o.Slice())
		}
	}
	if ops = pass(s, ps, to); len(ops) > 0 {
		t.Errorf("%d writes where nothing changed: %v", len(ops), ops[0])
	}
	// What an API server fills in does not count, and affinity that ends does.
	content := s.Records.Get(clustermesh.Origin{Cluster: "c1"}).Content
	content.Mirrors[7].AffinitySeconds = 60
	if ops = pass(s, ps, to); len(ops) != 1 || ops[0].Service() == nil || ops[0].Service().Spec.SessionAffinity != "ClientIP" {
		t.Fatalf("one Service has affinity now: %v", ops)
	}
	i := slices.IndexFunc(to.Services, func(s *corev1.Service) bool { return s.Name == ops[0].Service().Name })
	to.Services[i], content.Mirrors[7].AffinitySeconds = ops[0].Service(), 0
	if ops = pass(s, ps, to); len(ops) != 1 || ops[0].Service().Spec.SessionAffinity != "None" {
		t.Fatalf("it has none again: %v", ops)
	}
	to.Services[i] = ops[0].Service()
	content.Endpoints[4711].Ready = false
	if ops = pass(s, ps, to); len(ops) != 1 || ops[0].Verb != written.Update || ops[0].Slice() == nil {
		t.Errorf("one endpoint changed: %v", ops)
	}
}

// BenchmarkPass is a pass over 5,000 mirrors of which one changes.
func BenchmarkPass(b *testing.B) {
	s, ps := many(5000), []policy.Policy{mirroring("shop")}
	to := cluster("c2")
	for _, o := range pass(s, ps, to) {
		if o.Service() != nil {
			to.Services = append(to.Services, defaulted(o.Service().DeepCopy()))
		} else {
			to.Slices = append(to.Slices, o.Slice())
		}
	}
	one := &s.Records.Get(clustermesh.Origin{Cluster: "c1"}).Content.Endpoints[4711]
	one.Ready = false
	b.ReportAllocs()
	for b.Loop() {
		if ops := pass(s, ps, to); len(ops) != 1 {
			b.Fatalf("%d writes", len(ops))
		}
	}
}
