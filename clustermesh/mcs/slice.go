package mcs

import (
	"cmp"
	"crypto/sha256"
	"fmt"
	"maps"
	"net/netip"
	"reflect"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	mcsv1beta1 "sigs.k8s.io/mcs-api/pkg/apis/v1beta1"

	"strait.io/strait/clustermesh"
	"strait.io/strait/clustermesh/object"
)

// sliceEndpoint is one address of a slice set, with the ports that it listens on.
type sliceEndpoint struct {
	addr     netip.Addr
	ports    []clustermesh.EndpointPort
	endpoint discoveryv1.Endpoint
}

// set is a slice set: all slices with the same labels.
type set struct {
	labels map[string]string
	// key distinguishes the names of its slices from those of the service's other sets.
	key       string
	owner     []metav1.OwnerReference
	endpoints []sliceEndpoint
}

// importSets returns the sets that list all endpoints, one for each exporting cluster. CoreDNS
// reads them. They never have the label of Kubernetes' own Services, or kube-proxy and gateways
// would take them for another Service's.
func (d *differ) importSets() []set {
	byCluster := map[clustermesh.ClusterName][]sliceEndpoint{}
	for _, e := range d.imp.Endpoints {
		byCluster[e.Cluster] = append(byCluster[e.Cluster], sliceEndpoint{e.Addr, e.Ports, d.endpoint(e)})
	}
	return sets("import/", d.ownedByImport(), byCluster, func(c clustermesh.ClusterName) map[string]string {
		return map[string]string{
			mcsv1beta1.LabelServiceName:   d.name.Name,
			mcsv1beta1.LabelSourceCluster: string(c),
			discoveryv1.LabelManagedBy:    object.SliceManager,
		}
	})
}

func (d *differ) ownedByImport() []metav1.OwnerReference {
	return owner(d.have.Import, d.have.API.Imports.Version)
}

// sets returns a set of each cluster's endpoints, sorted by cluster.
func sets(kind string, owner []metav1.OwnerReference, byCluster map[clustermesh.ClusterName][]sliceEndpoint, labels func(clustermesh.ClusterName) map[string]string) (out []set) {
	for _, c := range slices.Sorted(maps.Keys(byCluster)) {
		out = append(out, set{labels: labels(c), key: kind + string(c), owner: owner, endpoints: byCluster[c]})
	}
	return out
}

func (d *differ) endpoint(e clustermesh.ClusterEndpoint) discoveryv1.Endpoint {
	out := discoveryv1.Endpoint{
		Addresses:  []string{e.Addr.String()},
		Conditions: conditions(e.Ready && !e.Dead, e.Serving && !e.Dead, e.Terminating),
		Zone:       ptr(e.Zone), Hostname: ptr(e.Hostname),
	}
	if e.Cluster == d.view.Cluster { // another cluster's node may have the same name as one of ours
		out.NodeName = ptr(string(e.Node))
	}
	return out
}

// derivedSets returns the sets that list what this cluster would use now, for kube-proxy. They have
// the Service's ports under the Service's names, and only endpoints of the Service's families,
// because its addresses reach no others. There is one set for each cluster, so that the slices of a
// cluster that is not known can stay as they are.
func (d *differ) derivedSets(service *corev1.Service) []set {
	byCluster := map[clustermesh.ClusterName][]sliceEndpoint{}
	ports, families := service.Spec.Ports, d.serviceFamilies(service)
	for _, b := range d.imp.Backends {
		if !slices.Contains(families, corev1.IPFamily(clustermesh.FamilyOf(b.Addr.Addr()))) {
			continue
		}
		i := slices.IndexFunc(ports, func(p corev1.ServicePort) bool {
			return p.Port == int32(b.Port.Port) && string(p.Protocol) == b.Port.Proto.String()
		})
		if i < 0 {
			continue // a user's import that leaves this port out
		}
		port := clustermesh.EndpointPort{Name: ports[i].Name, Proto: b.Port.Proto, Port: b.Addr.Port()}
		byCluster[b.Cluster] = append(byCluster[b.Cluster],
			sliceEndpoint{b.Addr.Addr(), []clustermesh.EndpointPort{port}, d.backend(b, deref(service.Spec.TrafficDistribution))})
	}
	return sets("derived/"+service.Name+"/", d.ownedByImport(), byCluster, func(c clustermesh.ClusterName) map[string]string {
		return map[string]string{
			discoveryv1.LabelServiceName: service.Name,
			discoveryv1.LabelManagedBy:   object.SliceManager,
			object.LabelServiceImport:    d.name.Name,
			// Meshes and policy engines select by it.
			mcsv1beta1.LabelSourceCluster: string(c),
		}
	})
}

func (d *differ) backend(b Backend, distribution string) discoveryv1.Endpoint {
	out := discoveryv1.Endpoint{
		Addresses:  []string{b.Addr.Addr().String()},
		Conditions: conditions(b.Ready, b.Serving, b.Terminating),
		Zone:       ptr(b.Zone), Hints: d.hints(b, distribution),
	}
	if b.Cluster == d.view.Cluster {
		out.NodeName = ptr(string(b.Node))
	}
	return out
}

// hints returns the hints from which kube-proxy takes the preference; for other Services,
// Kubernetes' controller sets them. kube-proxy uses hints of one kind only if all endpoints have
// them. So an endpoint that is on no node of this cluster gets a hint for a node that cannot exist:
// no node prefers it, and the hints of the other endpoints still count.
func (d *differ) hints(b Backend, distribution string) *discoveryv1.EndpointHints {
	out := &discoveryv1.EndpointHints{}
	switch distribution {
	case corev1.ServiceTrafficDistributionPreferSameNode:
		node := string(b.Node)
		if b.Cluster != d.view.Cluster || node == "" {
			node = string(b.Cluster) + ".clusterset.invalid"
		}
		out.ForNodes = []discoveryv1.ForNode{{Name: node}}
	case corev1.ServiceTrafficDistributionPreferClose, corev1.ServiceTrafficDistributionPreferSameZone:
	default:
		return nil
	}
	if b.Zone != "" {
		out.ForZones = []discoveryv1.ForZone{{Name: b.Zone}}
	} else if out.ForNodes == nil {
		return nil
	}
	return out
}

func conditions(ready, serving, terminating bool) discoveryv1.EndpointConditions {
	return discoveryv1.EndpointConditions{Ready: &ready, Serving: &serving, Terminating: &terminating}
}

// slicesOf returns the EndpointSlices of a set: each has one IP family and one list of ports, as
// the API requires, and at most maxEndpoints addresses.
func (d *differ) slicesOf(s set) []*discoveryv1.EndpointSlice {
	type groupKey struct {
		family clustermesh.Family
		ports  string
	}
	groups := map[groupKey]map[netip.Addr]sliceEndpoint{}
	for _, e := range arrange(s.endpoints) {
		k := groupKey{clustermesh.FamilyOf(e.addr), fmt.Sprint(e.ports)}
		if groups[k] == nil {
			groups[k] = map[netip.Addr]sliceEndpoint{}
		}
		groups[k][e.addr] = e
	}
	var out []*discoveryv1.EndpointSlice
	for k, group := range groups {
		addrs := make([]netip.Addr, 0, len(group))
		for a := range group {
			addrs = append(addrs, a)
		}
		for _, l := range pack(addrs, maxEndpoints) {
			obj := &discoveryv1.EndpointSlice{
				ObjectMeta: metav1.ObjectMeta{
					Namespace: d.name.Namespace, Labels: s.labels, OwnerReferences: s.owner,
					Name: d.name.Name + "-" + hash(d.name.Name, s.key, string(k.family), k.ports, l.id),
				},
				AddressType: discoveryv1.AddressType(k.family), Ports: slicePorts(group[addrs[0]].ports),
			}
			for _, a := range l.addrs {
				obj.Endpoints = append(obj.Endpoints, group[a].endpoint)
			}
			out = append(out, obj)
		}
	}
	slices.SortFunc(out, func(a, b *discoveryv1.EndpointSlice) int { return strings.Compare(a.Name, b.Name) })
	return out
}

// arrange makes each listener, an address with a port, appear once. Listeners of one address share
// one if they have the same endpoint, and no name of a port is twice in it.
func arrange(endpoints []sliceEndpoint) (out []sliceEndpoint) {
	listeners := map[netip.Addr]map[clustermesh.EndpointPort]discoveryv1.Endpoint{}
	for _, e := range endpoints {
		at := listeners[e.addr]
		if at == nil {
			at = map[clustermesh.EndpointPort]discoveryv1.Endpoint{}
			listeners[e.addr] = at
		}
		if len(e.ports) == 0 {
			e.ports = make([]clustermesh.EndpointPort, 1) // which arrangeOne takes away again
		}
		for _, p := range e.ports {
			if old, twice := at[p]; !twice || better(e.endpoint, old) {
				at[p] = e.endpoint
			}
		}
	}
	for addr, at := range listeners {
		out = append(out, arrangeOne(addr, at)...)
	}
	return out
}

// arrangeOne is arrange for one address.
func arrangeOne(addr netip.Addr, at map[clustermesh.EndpointPort]discoveryv1.Endpoint) (out []sliceEndpoint) {
	var alike []sliceEndpoint
	for _, p := range slices.SortedFunc(maps.Keys(at), comparePorts) {
		i := slices.IndexFunc(alike, func(e sliceEndpoint) bool { return reflect.DeepEqual(e.endpoint, at[p]) })
		if i < 0 {
			i = len(alike)
			alike = append(alike, sliceEndpoint{addr: addr, endpoint: at[p]})
		}
		if p != (clustermesh.EndpointPort{}) {
			alike[i].ports = append(alike[i].ports, p)
		}
	}
	for _, e := range alike {
		for _, ports := range clustermesh.OneOfEachName(e.ports) {
			out = append(out, sliceEndpoint{addr, ports, e.endpoint})
		}
	}
	return out
}

// better chooses between two reports of one listener, independently of their order.
func better(a, b discoveryv1.Endpoint) bool {
	rank := func(e discoveryv1.Endpoint) string {
		return fmt.Sprint(*e.Conditions.Ready, *e.Conditions.Serving, !*e.Conditions.Terminating, deref(e.Hostname), deref(e.NodeName), deref(e.Zone))
	}
	return rank(a) > rank(b)
}

func comparePorts(a, b clustermesh.EndpointPort) int {
	return cmp.Or(strings.Compare(a.Name, b.Name), cmp.Compare(a.Proto, b.Proto), cmp.Compare(a.Port, b.Port))
}

func slicePorts(ports []clustermesh.EndpointPort) []discoveryv1.EndpointPort {
	out := make([]discoveryv1.EndpointPort, 0, len(ports))
	for _, p := range ports {
		name, proto, port := p.Name, corev1.Protocol(p.Proto.String()), int32(p.Port)
		out = append(out, discoveryv1.EndpointPort{Name: &name, Protocol: &proto, Port: &port})
	}
	return out
}

// Slice holds what matters of an existing EndpointSlice: whose it is, and a checksum of its
// contents. All the slices of a clusterset, kept whole, would be most of a leader's memory.
type Slice struct {
	Name string
	UID  types.UID
	// Cluster is where the endpoints are. Derived is the derived Service that the slice is for;
	// empty for a slice of the import, or of a global Service, for which Global is set.
	Cluster clustermesh.ClusterName
	Derived string
	Global  bool
	Owners  []types.UID
	Sum     Sum
}

// Sum is a checksum of a slice's contents: slices with equal sums are equal.
type Sum [16]byte

// SliceFrom returns what matters of a slice. It retains nothing of the slice's memory except short
// strings.
func SliceFrom(s *discoveryv1.EndpointSlice) Slice {
	out := Slice{Name: s.Name, UID: s.UID, Cluster: clustermesh.ClusterName(s.Labels[mcsv1beta1.LabelSourceCluster]),
		Global: s.Labels[object.LabelGlobalService] != "", Sum: sumOf(s)}
	if !out.Global {
		out.Derived = s.Labels[discoveryv1.LabelServiceName]
	}
	// If the slice's name begins with the Service's, share its memory.
	if strings.HasPrefix(s.Name, out.Derived) {
		out.Derived = s.Name[:len(out.Derived)]
	}
	for _, o := range s.OwnerReferences {
		out.Owners = append(out.Owners, o.UID)
	}
	return out
}

// sliceLabels are the labels that strait writes on slices.
var sliceLabels = []string{
	mcsv1beta1.LabelServiceName, mcsv1beta1.LabelSourceCluster, discoveryv1.LabelManagedBy, discoveryv1.LabelServiceName, object.LabelServiceImport,
	object.LabelGlobalService,
}

// sumOf hashes what strait writes. The encoding does not distinguish an empty list from a missing
// one.
func sumOf(s *discoveryv1.EndpointSlice) (out Sum) {
	h := sha256.New()
	for _, key := range sliceLabels {
		fmt.Fprintf(h, "%q ", s.Labels[key])
	}
	content := discoveryv1.EndpointSlice{AddressType: s.AddressType, Endpoints: s.Endpoints, Ports: s.Ports}
	b, _ := content.Marshal() // cannot fail: it writes to memory
	h.Write(b)
	copy(out[:], h.Sum(nil))
	return out
}

// sameSlice reports whether have has everything that want has.
func sameSlice(have Slice, want *discoveryv1.EndpointSlice) bool {
	return have.Sum == sumOf(want) &&
		!slices.ContainsFunc(want.OwnerReferences, func(w metav1.OwnerReference) bool { return !slices.Contains(have.Owners, w.UID) })
}

func ownsAll(have, want []metav1.OwnerReference) bool {
	return !slices.ContainsFunc(want, func(w metav1.OwnerReference) bool {
		return !slices.ContainsFunc(have, func(h metav1.OwnerReference) bool { return h.UID == w.UID })
	})
}

// ptr returns nil for the zero value: an optional field that is not set.
func ptr[T comparable](v T) *T {
	var zero T
	if v == zero {
		return nil
	}
	return &v
}

func deref[T any](p *T) (v T) {
	if p != nil {
		v = *p
	}
	return v
}
