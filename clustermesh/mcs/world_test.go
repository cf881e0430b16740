package mcs

import (
	"encoding/json"
	"fmt"
	"maps"
	"net/netip"
	"reflect"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	mcsv1beta1 "sigs.k8s.io/mcs-api/pkg/apis/v1beta1"

	"strait.io/strait/clustermesh"
	"strait.io/strait/clustermesh/object"
	"strait.io/strait/clustermesh/written"
	"strait.io/strait/internal/l4"
)

var (
	serve = clustermesh.ServiceName{Namespace: "default", Name: "serve"}
	start = time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
	http  = clustermesh.ServicePort{Name: "http", Proto: l4.TCP, Port: 80}
)

// world is an API server of one cluster as far as Diff can see: it gives UIDs, ClusterIPs and
// generations, checks preconditions, and lets fields go that an apply leaves out.
type world struct {
	t        failer
	families []corev1.IPFamily // that its Services get
	now      time.Time
	serial   int
	imports  map[string]*mcsv1beta1.ServiceImport
	exports  map[string]*mcsv1beta1.ServiceExport
	services map[string]*corev1.Service
	slices   map[string]*discoveryv1.EndpointSlice
	trouble  Trouble
	api      API
	taken    []string // addresses that others have
	refuses  string   // its answer to every write of a Service
	writes   []written.Op
}

// failer is what tests and properties have in common.
type failer interface {
	Helper()
	Fatalf(format string, args ...any)
}

func newWorld(t failer) *world {
	return &world{
		t: t, now: start, families: []corev1.IPFamily{corev1.IPv4Protocol},
		imports: map[string]*mcsv1beta1.ServiceImport{}, exports: map[string]*mcsv1beta1.ServiceExport{},
		services: map[string]*corev1.Service{}, slices: map[string]*discoveryv1.EndpointSlice{},
	}
}

func (w *world) have(s clustermesh.ServiceName) Have {
	h := Have{
		Import: w.imports[s.String()], Export: w.exports[s.String()], Trouble: w.trouble, API: w.api,
		OldExport: w.exports[written.OldExport+" "+s.String()], OldImport: w.imports[written.OldImport+" "+s.String()], GKEImport: w.imports[written.GKEImport+" "+s.String()],
	}
	for _, k := range slices.Sorted(maps.Keys(w.services)) {
		if of, ok := ServiceOf(w.services[k]); ok && of == s {
			h.Services = append(h.Services, w.services[k])
		}
	}
	for _, k := range slices.Sorted(maps.Keys(w.slices)) {
		if of, ok := SliceOf(w.slices[k]); ok && of == s {
			h.Slices = append(h.Slices, SliceFrom(w.slices[k]))
		}
	}
	return h
}

// settle applies operations until there are none, and returns all of them.
func (w *world) settle(v View, s clustermesh.ServiceName) []written.Op {
	w.t.Helper()
	var all []written.Op
	for range 8 {
		w.now = w.now.Add(time.Second)
		ops, _ := Diff(v, s, w.have(s), w.now)
		if len(ops) == 0 {
			return all
		}
		for _, o := range ops {
			w.apply(o)
		}
		all = append(all, ops...)
	}
	w.t.Fatalf("does not settle; last: %v", all[len(all)-1])
	return nil
}

func (w *world) uid() types.UID {
	w.serial++
	return types.UID(fmt.Sprintf("uid-%d", w.serial))
}

func (w *world) apply(o written.Op) {
	w.t.Helper()
	w.writes = append(w.writes, o)
	served := w.api.Imports
	if Foreign(o) {
		served = w.api.Foreign[o.Kind]
	}
	if ImportOf(o) != nil && !reflect.DeepEqual(prune(served, ImportOf(o)).Spec.IPs, ImportOf(o).Spec.IPs) {
		w.t.Fatalf("%s: the API server refuses it: ips %v", o, ImportOf(o).Spec.IPs)
	}
	if ImportOf(o) != nil { // the rest it drops
		o.Object = prune(served, ImportOf(o))
	}
	key := o.Object.GetNamespace() + "/" + o.Object.GetName()
	if Foreign(o) {
		key = o.Kind + " " + key
	}
	if o.Verb == written.Create && o.Service() != nil && w.services[key] != nil {
		if _, ours := ServiceOf(w.services[key]); !ours {
			own := o.Service().Name == o.Service().Labels[object.LabelServiceImport]
			w.trouble = Trouble{OwnNameTaken: w.trouble.OwnNameTaken || own, NameTaken: !own}
			return
		}
	}
	if uid := w.uidOf(o, key); (o.Verb == written.Create) == (uid != "") && w.trouble == (Trouble{}) || o.Verb != written.Create && uid != o.Object.GetUID() {
		w.t.Fatalf("%s: UID %q, the API server has %q", o, o.Object.GetUID(), uid)
	}
	switch {
	case ImportOf(o) != nil:
		w.applyImport(key, o)
	case o.Service() != nil:
		w.applyService(key, o)
	case o.Slice() != nil && o.Verb == written.Delete:
		delete(w.slices, key)
	case o.Slice() != nil:
		if o.Slice().UID == "" {
			o.Slice().UID = w.uid()
		}
		w.slices[key] = o.Slice()
	default:
		have := w.exports[key].DeepCopy()
		have.Status = ExportOf(o).Status
		w.exports[key] = have
	}
}

func (w *world) uidOf(o written.Op, key string) types.UID {
	switch {
	case ImportOf(o) != nil && w.imports[key] != nil:
		return w.imports[key].UID
	case o.Service() != nil && w.services[key] != nil:
		return w.services[key].UID
	case o.Slice() != nil && w.slices[key] != nil:
		return w.slices[key].UID
	case ExportOf(o) != nil && w.exports[key] != nil:
		return w.exports[key].UID
	}
	return ""
}

func (w *world) applyImport(key string, o written.Op) {
	if o.Verb == written.Delete {
		delete(w.imports, key)
		return
	}
	next := ImportOf(o).DeepCopy()
	have := w.imports[key]
	switch {
	case o.Verb == written.ApplyStatus:
		next = have.DeepCopy()
		next.Status = ImportOf(o).Status
	case o.Verb == written.Create:
		next.UID, next.Generation = w.uid(), 1
		next.ManagedFields = fieldsOf(next, len(next.Spec.IPs) > 0)
	default:
		next.Generation, next.Status = have.Generation+1, have.Status
		if !o.Force {
			next = have.DeepCopy()
			if len(ImportOf(o).Spec.IPs) > 0 || wroteIPs(have.ManagedFields) { // else they are the user's
				next.Spec.IPs = ImportOf(o).Spec.IPs
			}
			next.Annotations = maps.Clone(next.Annotations)
			if next.Annotations == nil {
				next.Annotations = map[string]string{}
			}
			delete(next.Annotations, DerivedAnnotation) // ours: it goes unless it is applied again
			maps.Copy(next.Annotations, ImportOf(o).Annotations)
		}
		next.ManagedFields = fieldsOf(next, len(ImportOf(o).Spec.IPs) > 0)
	}
	w.imports[key] = next
}

// fieldsOf is the API server's account of who wrote labels and annotations, all by strait, and ips.
func fieldsOf(i *mcsv1beta1.ServiceImport, ips bool) []metav1.ManagedFieldsEntry {
	keys := func(m map[string]string) map[string]any {
		out := map[string]any{}
		for k := range m {
			out["f:"+k] = map[string]any{}
		}
		return out
	}
	spec := map[string]string{}
	if ips {
		spec["ips"] = ""
	}
	raw, _ := json.Marshal(map[string]any{"f:spec": keys(spec), "f:metadata": map[string]any{
		"f:labels": keys(i.Labels), "f:annotations": keys(i.Annotations),
	}}) // plain maps always encode
	return []metav1.ManagedFieldsEntry{{Manager: written.Manager, Operation: metav1.ManagedFieldsOperationApply, FieldsV1: metav1.NewFieldsV1(string(raw))}}
}

func (w *world) applyService(key string, o written.Op) {
	if o.Verb == written.Delete {
		delete(w.services, key)
		return
	}
	if w.trouble.Refused = w.refuses; w.trouble.FamilyNotSupported || w.refuses != "" {
		return
	}
	if slices.ContainsFunc(o.Service().Spec.ClusterIPs, func(ip string) bool { return slices.Contains(w.taken, ip) }) {
		w.trouble.AddressRefused++
		return
	}
	w.trouble = Trouble{OwnNameTaken: w.trouble.OwnNameTaken}
	next := o.Service().DeepCopy()
	for i := range next.Spec.Ports {
		next.Spec.Ports[i].TargetPort.IntVal = next.Spec.Ports[i].Port
	}
	if have := w.services[key]; have != nil {
		next.Spec.ClusterIPs, next.Spec.IPFamilies = have.Spec.ClusterIPs, have.Spec.IPFamilies
		if *next.Spec.IPFamilyPolicy == corev1.IPFamilyPolicySingleStack {
			next.Spec.ClusterIPs, next.Spec.IPFamilies = have.Spec.ClusterIPs[:1], have.Spec.IPFamilies[:1]
		}
	} else {
		next.UID = w.uid()
		next.Spec.IPFamilies = w.families
		if *next.Spec.IPFamilyPolicy == corev1.IPFamilyPolicySingleStack {
			next.Spec.IPFamilies = w.families[:1]
		}
	}
	if *next.Spec.IPFamilyPolicy == corev1.IPFamilyPolicyPreferDualStack {
		next.Spec.IPFamilies = w.families
	}
	for _, f := range next.Spec.IPFamilies[len(next.Spec.ClusterIPs):] {
		w.serial++
		ip := fmt.Sprintf("10.96.%d.%d", w.serial/250, w.serial%250+1)
		if f == corev1.IPv6Protocol {
			ip = fmt.Sprintf("fd96::%x", w.serial)
		}
		next.Spec.ClusterIPs = append(slices.Clone(next.Spec.ClusterIPs), ip)
	}
	w.services[key] = next
}

// export adds a ServiceExport object of the own cluster.
func (w *world) export(s clustermesh.ServiceName) {
	w.exports[s.String()] = &mcsv1beta1.ServiceExport{ObjectMeta: metav1.ObjectMeta{Namespace: s.Namespace, Name: s.Name, UID: w.uid(), Generation: 1}}
}

// viewOf is the view of cluster c1 of a set in which clusters export serve, merged as the real
// thing merges it.
func viewOf(exports ...clustermesh.ClusterExport) View {
	v := View{
		Cluster: "c1", Clusters: map[clustermesh.ClusterName]Knowledge{"c1": Current, "c2": Current, "c3": Current},
	}
	byName := map[clustermesh.ServiceName][]clustermesh.ClusterExport{}
	for _, e := range exports {
		byName[e.Service] = append(byName[e.Service], e)
		if e.Cluster == v.Cluster {
			v = v.judge(clustermesh.ExportStatus{Service: e.Service, Valid: true, Exported: true, Reason: "Valid"})
		}
	}
	for _, s := range slices.SortedFunc(maps.Keys(byName), clustermesh.ServiceName.Compare) {
		i, _ := clustermesh.Merge(byName[s])
		v.Imports = append(v.Imports, made{Import{Import: i}})
	}
	return v
}

func exportOf(c clustermesh.ClusterName, created int64, change ...func(*clustermesh.Export)) clustermesh.ClusterExport {
	e := clustermesh.Export{
		Service: serve, Type: clustermesh.ClusterSetIP, Ports: []clustermesh.ServicePort{http}, Created: created,
		InternalTrafficPolicy: "Cluster", Families: []clustermesh.Family{clustermesh.IPv4},
	}
	for _, f := range change {
		f(&e)
	}
	return clustermesh.ClusterExport{Cluster: c, Export: e}
}

// change edits the view's import of serve.
func (v View) change(f func(*Import)) View {
	v.Imports = slices.Clone(v.Imports)
	n := slices.IndexFunc(v.Imports, func(s Source[Import]) bool { return s.Name() == serve })
	i := v.Imports[n].Make()
	f(&i)
	v.Imports[n] = made{i}
	return v
}

// judge adds a verdict on an export, or replaces it.
func (v View) judge(e clustermesh.ExportStatus) View {
	n, known := slices.BinarySearchFunc(v.Exports, e.Service, func(o clustermesh.ExportStatus, s clustermesh.ServiceName) int { return o.Service.Compare(s) })
	if v.Exports = slices.Clone(v.Exports); known {
		v.Exports[n] = e
		return v
	}
	v.Exports = slices.Insert(v.Exports, n, e)
	return v
}

// made is an import that is there already.
type made struct{ i Import }

func (m made) Name() clustermesh.ServiceName { return m.i.Service }
func (m made) Make() Import                  { return m.i }
func (m made) Same(o Source[Import]) bool    { return reflect.DeepEqual(m.i, o.Make()) }

// pod adds a ready endpoint of a cluster that is in use.
func pod(c clustermesh.ClusterName, addr string, port uint16) func(*Import) {
	return func(i *Import) {
		a := netip.MustParseAddr(addr)
		i.Endpoints = append(slices.Clone(i.Endpoints), clustermesh.ClusterEndpoint{Cluster: c, Endpoint: clustermesh.Endpoint{
			Service: serve, Addr: a, Ports: []clustermesh.EndpointPort{{Name: "http", Proto: l4.TCP, Port: port}},
			Node: "n1", Zone: "z1", Hostname: "h-" + strings.NewReplacer(".", "-", ":", "-").Replace(a.String()), Ready: true, Serving: true,
		}})
		i.Backends = append(slices.Clone(i.Backends), Backend{
			Port: http, Addr: netip.AddrPortFrom(a, port), Cluster: c, Node: "n1", Zone: "z1", Ready: true, Serving: true,
		})
	}
}

func condition(cs []metav1.Condition, t string) metav1.Condition {
	for _, c := range cs {
		if c.Type == t {
			return c
		}
	}
	return metav1.Condition{}
}
