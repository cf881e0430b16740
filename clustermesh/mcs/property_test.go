package mcs

import (
	"encoding/binary"
	"fmt"
	"maps"
	"net/netip"
	"slices"
	"testing"

	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"pgregory.net/rapid"
	mcsv1beta1 "sigs.k8s.io/mcs-api/pkg/apis/v1beta1"

	"strait.io/strait/clustermesh"
	"strait.io/strait/clustermesh/written"
	"strait.io/strait/internal/l4"
)

func drawAddr(rt *rapid.T) netip.Addr {
	n := rapid.IntRange(0, 1023).Draw(rt, "addr")
	if n%5 == 4 {
		return netip.MustParseAddr(fmt.Sprintf("fd00::%x", n+1))
	}
	return netip.AddrFrom4([4]byte{10, 0, byte(n >> 8), byte(n)})
}

func drawView(rt *rapid.T) View {
	ports := []clustermesh.ServicePort{http, {Proto: l4.UDP, Port: 53}, {Name: "sctp", Proto: l4.SCTP, Port: 9}}
	var exports []clustermesh.ClusterExport
	for _, c := range []clustermesh.ClusterName{"c1", "c2", "c3"} {
		if rapid.Bool().Draw(rt, "exports") {
			exports = append(exports, exportOf(c, rapid.Int64Range(1, 3).Draw(rt, "created"), func(e *clustermesh.Export) {
				e.Type = rapid.SampledFrom([]clustermesh.ServiceType{clustermesh.ClusterSetIP, clustermesh.ClusterSetIP, clustermesh.Headless}).Draw(rt, "type")
				e.Ports = ports[:rapid.IntRange(0, 3).Draw(rt, "ports")]
				e.AffinitySeconds = uint32(rapid.IntRange(0, 2).Draw(rt, "affinity"))
			}))
		}
	}
	v := viewOf(exports...)
	for c := range v.Clusters {
		v.Clusters[c] = rapid.SampledFrom([]Knowledge{Unknown, Held, Current, Current, Current}).Draw(rt, "knowledge "+string(c))
	}
	v.Config = Config{
		ImportSlices:  rapid.SampledFrom([]SliceMode{SlicesAll, SlicesHeadless, SlicesNone}).Draw(rt, "slices"),
		ClusterSetIPs: rapid.SampledFrom([]IPMode{IPsDerived, IPsDerived, IPsCIDR}).Draw(rt, "ips"),
		DerivedPrefix: rapid.SampledFrom([]*string{nil, nil, new(""), new("x-")}).Draw(rt, "prefix"),
	}
	if rapid.IntRange(0, 9).Draw(rt, "barred") == 0 {
		v.Config.Barred = clustermesh.Barred{"default"}
	}
	if rapid.Bool().Draw(rt, "global") {
		var endpoints []clustermesh.ClusterEndpoint
		for range rapid.IntRange(0, 120).Draw(rt, "global endpoints") {
			endpoints = append(endpoints, memberOf(rapid.SampledFrom([]clustermesh.ClusterName{"c1", "c2", "c3"}).Draw(rt, "of"), drawAddr(rt).String(), ""))
		}
		v = v.asks(endpoints...)
	}
	if len(exports) == 0 {
		return v
	}
	return v.change(func(i *Import) {
		i.Families = []clustermesh.Family{clustermesh.IPv4, clustermesh.IPv6}[:rapid.IntRange(0, 2).Draw(rt, "families")]
		i.TrafficDistribution = rapid.SampledFrom([]string{"", "PreferClose"}).Draw(rt, "distribution")
		i.Labels = map[string]string{"l": rapid.SampledFrom([]string{"1", "2"}).Draw(rt, "label")}
		if rapid.Bool().Draw(rt, "annotated") {
			i.Annotations = map[string]string{"a": "1"}
		}
		i.IPs = []netip.Addr{netip.MustParseAddr("241.0.0.9")}
		for range rapid.IntRange(0, 150).Draw(rt, "endpoints") {
			pod(rapid.SampledFrom(i.Exporters).Draw(rt, "of"), drawAddr(rt).String(), uint16(rapid.IntRange(8080, 8081).Draw(rt, "port")))(i)
			if last := &i.Endpoints[len(i.Endpoints)-1]; rapid.Bool().Draw(rt, "two listeners of one name") {
				last.Ports = append(last.Ports, clustermesh.EndpointPort{Name: "http", Proto: l4.TCP, Port: 9090})
			}
		}
	})
}

// foreign puts other writers' objects beside ours, under names that ours might have.
func foreign(w *world, user bool) {
	other := metav1.ObjectMeta{Namespace: "default", Name: "other", UID: "theirs"}
	w.services["default/other"] = &corev1.Service{ObjectMeta: other}
	w.slices["default/other"] = &discoveryv1.EndpointSlice{ObjectMeta: other}
	w.slices["default/other"].Labels = map[string]string{mcsv1beta1.LabelServiceName: "serve", discoveryv1.LabelManagedBy: "submariner.io"}
	if user {
		w.imports["default/serve"] = &mcsv1beta1.ServiceImport{
			ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "serve", UID: "theirs", Generation: 1},
			Spec:       mcsv1beta1.ServiceImportSpec{Type: mcsv1beta1.ClusterSetIP, Ports: []mcsv1beta1.ServicePort{{Port: 80}, {Port: 53, Protocol: "UDP"}}},
		}
	}
	w.export(serve)
}

// Whatever the views, operations come to an end, and then there are none; none touches what is not
// ours; nothing is deleted for want of knowledge.
func TestDiffProperties(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		w := newWorld(rt)
		if rapid.Bool().Draw(rt, "dual") {
			w.families = []corev1.IPFamily{corev1.IPv4Protocol, corev1.IPv6Protocol}
		}
		user := rapid.Bool().Draw(rt, "user's import")
		foreign(w, user)
		if rapid.Bool().Draw(rt, "a Service of the cluster's own") {
			w.services["default/serve"] = theirs("serve")
		}
		for range rapid.IntRange(1, 4).Draw(rt, "views") {
			v := drawView(rt)
			exporters := map[string]bool{}
			if i := w.imports["default/serve"]; i != nil {
				for _, c := range i.Status.Clusters {
					exporters[c.Cluster] = true
				}
			}
			ops := w.settle(v, serve)
			for _, o := range ops {
				checkOp(rt, v, o, exporters, user)
			}
			if i := w.imports["default/serve"]; i != nil && v.Config.Barred == nil {
				checkImport(rt, i)
			}
		}
		if w.services["default/other"] == nil || w.slices["default/other"] == nil || user && w.imports["default/serve"] == nil {
			rt.Fatal("another writer's object is gone")
		}
	})
}

func checkOp(rt *rapid.T, v View, o written.Op, exporters map[string]bool, user bool) {
	if o.Verb != written.Create && o.Object.GetUID() == "" {
		rt.Fatalf("%s: without UID", o)
	}
	if o.Slice() != nil && o.Verb != written.Delete {
		checkSlice(rt, o.Slice())
	}
	if o.Object.GetUID() == "theirs" && (o.Force && o.Verb != written.ApplyStatus || o.Verb == written.Delete) {
		rt.Fatalf("%s: touches an object that is not ours", o)
	}
	if o.Verb != written.Delete || v.Config.Barred != nil {
		return
	}
	if ImportOf(o) != nil {
		for c := range exporters {
			if v.Clusters[clustermesh.ClusterName(c)] != Current {
				rt.Fatalf("%s: exporter %s is %d", o, c, v.Clusters[clustermesh.ClusterName(c)])
			}
		}
		for c, k := range v.Clusters {
			if k == Unknown {
				rt.Fatalf("%s: while %s is unknown", o, c)
			}
		}
	}
}

// checkSlice demands what API servers do, and each listener once.
func checkSlice(rt *rapid.T, s *discoveryv1.EndpointSlice) {
	names, listeners := map[string]bool{}, map[string]bool{}
	for _, p := range s.Ports {
		if names[*p.Name] {
			rt.Fatalf("slice %s has the port name %q twice", s.Name, *p.Name)
		}
		names[*p.Name] = true
		for _, e := range s.Endpoints {
			l := fmt.Sprint(e.Addresses[0], " ", *p.Port, " ", *p.Protocol)
			if listeners[l] {
				rt.Fatalf("slice %s has the listener %s twice", s.Name, l)
			}
			listeners[l] = true
		}
	}
}

func checkImport(rt *rapid.T, i *mcsv1beta1.ServiceImport) {
	if OurImport(i) && (i.Spec.Ports == nil || len(i.Spec.IPFamilies) == 0 || len(i.Spec.IPs) > 0 && len(i.Spec.IPs) != len(i.Spec.IPFamilies)) {
		rt.Fatalf("import %+v", i.Spec)
	}
	if i.Status.EndpointSliceObjects == "" || condition(i.Status.Conditions, "Ready").Message == "" {
		rt.Fatalf("status %+v", i.Status)
	}
}

// A change of one endpoint rewrites one slice of a set; only where a slice is full does it become
// two.
func TestPackProperties(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		limit := rapid.IntRange(1, 20).Draw(rt, "limit")
		addrs := slices.Collect(maps.Keys(rapid.MapOfN(rapid.Custom(drawAny), rapid.Just(true), 1, 300).Draw(rt, "addrs")))
		before, after := pack(addrs[1:], limit), pack(addrs, limit)
		old := map[string][]netip.Addr{}
		for _, l := range before {
			old[l.id] = l.addrs
		}
		seen := map[netip.Addr]bool{}
		ids := map[string]bool{}
		same := 0
		for _, l := range after {
			if len(l.addrs) == 0 || len(l.addrs) > limit || ids[l.id] || !slices.IsSortedFunc(l.addrs, netip.Addr.Compare) {
				rt.Fatalf("leaf %s: %v", l.id, l.addrs)
			}
			ids[l.id] = true
			for _, a := range l.addrs {
				seen[a] = true
			}
			if slices.Equal(old[l.id], l.addrs) {
				same++
			}
		}
		if len(seen) != len(addrs) {
			rt.Fatalf("%d addresses of %d", len(seen), len(addrs))
		}
		// All leaves but one are as they were; that one grew, or became several because it was
		// full.
		if same < len(before)-1 || len(after) == len(before) && same != len(before)-1 {
			rt.Fatalf("one address more: %d leaves became %d, of which %d are as they were", len(before), len(after), same)
		}
		slices.Reverse(addrs)
		if again := pack(addrs, limit); fmt.Sprint(again) != fmt.Sprint(after) {
			rt.Fatal("depends on the order")
		}
	})
}

func drawAny(rt *rapid.T) netip.Addr {
	var b [4]byte
	binary.BigEndian.PutUint32(b[:], rapid.Uint32().Draw(rt, "v4"))
	return netip.AddrFrom4(b)
}

func TestOneEndpointRewritesOneSliceOfEachSet(t *testing.T) {
	w := newWorld(t)
	v := viewOf(exportOf("c1", 1), exportOf("c2", 2)).change(func(i *Import) {
		for n := range 1000 {
			pod([]clustermesh.ClusterName{"c1", "c2"}[n%2], netip.AddrFrom4([4]byte{10, 0, byte(n >> 8), byte(n)}).String(), 8080)(i)
		}
	})
	w.settle(v, serve)
	if len(w.slices) < 20 {
		t.Fatalf("%d slices", len(w.slices))
	}
	sick := v.change(func(i *Import) {
		i.Endpoints, i.Backends = slices.Clone(i.Endpoints), slices.Clone(i.Backends)
		i.Endpoints[500].Ready = false
		i.Backends = slices.Delete(i.Backends, 500, 501)
	})
	if ops := w.settle(sick, serve); len(ops) != 2 || ops[0].Kind != "EndpointSlice" || ops[1].Kind != "EndpointSlice" {
		t.Errorf("one endpoint's change: %v", ops)
	}
	if got := Changed(v, sick); len(got) != 1 || got[0] != serve {
		t.Errorf("changed: %v", got)
	}
	if got := Changed(v, v.change(func(i *Import) { i.Endpoints = slices.Clone(i.Endpoints) })); len(got) != 0 {
		t.Errorf("changed by nothing: %v", got)
	}
}

// BenchmarkDiff is the cost of one service with ten endpoints that is as it should be.
func BenchmarkDiff(b *testing.B) {
	w := newWorld(b)
	v := viewOf(exportOf("c1", 1), exportOf("c2", 2)).change(func(i *Import) {
		for n := range 10 {
			pod([]clustermesh.ClusterName{"c1", "c2"}[n%2], netip.AddrFrom4([4]byte{10, 0, 0, byte(n)}).String(), 8080)(i)
		}
	})
	w.settle(v, serve)
	h := w.have(serve)
	b.ReportAllocs()
	for b.Loop() {
		if ops, _ := Diff(v, serve, h, start); len(ops) > 0 {
			b.Fatal(ops)
		}
	}
}
