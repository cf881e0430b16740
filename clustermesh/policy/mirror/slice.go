package mirror

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"net/netip"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"strait.io/strait/clustermesh/object"
	"strait.io/strait/clustermesh/policy"
)

// slice makes an EndpointSlice of a target, without endpoints. Its name depends on the object of the
// source's cluster that it is made from.
func (t *target) slice(set string, f from, of string, family discoveryv1.AddressType, ports []discoveryv1.EndpointPort) *discoveryv1.EndpointSlice {
	sum := sha256.Sum256([]byte(f.cluster.ID + "/" + f.svc.Namespace + "/" + of))
	return &discoveryv1.EndpointSlice{
		ObjectMeta: metav1.ObjectMeta{Namespace: t.namespace, Name: t.name + "-" + hex.EncodeToString(sum[:5]), Labels: map[string]string{
			discoveryv1.LabelServiceName: t.name, discoveryv1.LabelManagedBy: object.SliceManager, object.LabelManagedBy: object.ManagedBy,
			LabelPolicy: t.policy.Name, LabelSet: set, LabelSource: f.cluster.ID,
		}},
		AddressType: family, Ports: ports,
	}
}

// pods makes the EndpointSlices of a source whose endpoints are its pods.
func (t *target) pods(set string, f from) (out []*discoveryv1.EndpointSlice) {
	for _, have := range f.slices() {
		s := t.slice(set, f, have.Name, have.AddressType, t.named(f, have.Ports))
		for _, e := range have.Endpoints {
			// Names of nodes are the other cluster's: a node of this one may have the same.
			s.Endpoints = append(s.Endpoints, discoveryv1.Endpoint{Addresses: e.Addresses, Conditions: e.Conditions, Hostname: e.Hostname, Zone: e.Zone})
		}
		out = append(out, s)
	}
	slices.SortFunc(out, func(a, b *discoveryv1.EndpointSlice) int { return strings.Compare(a.Name, b.Name) })
	return out
}

// addresses makes the EndpointSlices of a source whose endpoints are its ClusterIPs: one for each family.
// An address is ready if a pod behind it is. Whatever serves the address in the source's cluster chooses
// the pod.
func (t *target) addresses(set string, f from) (out []*discoveryv1.EndpointSlice) {
	var ports []discoveryv1.EndpointPort
	for _, p := range f.svc.Spec.Ports {
		ports = append(ports, discoveryv1.EndpointPort{Name: &p.Name, Protocol: &p.Protocol, Port: &p.Port, AppProtocol: p.AppProtocol})
	}
	ports, ready := t.named(f, ports), f.ready()
	for _, ip := range f.clusterIPs() {
		if !f.entered(ip) {
			continue
		}
		family := discoveryv1.AddressTypeIPv4
		if ip.Is6() {
			family = discoveryv1.AddressTypeIPv6
		}
		s := t.slice(set, f, f.svc.Name+" "+string(family), family, ports)
		s.Endpoints = []discoveryv1.Endpoint{{Addresses: []string{ip.String()}, Conditions: discoveryv1.EndpointConditions{Ready: &ready}}}
		out = append(out, s)
	}
	return out
}

// clusterIPs are the addresses of a source; none while they are not chosen yet.
func (f from) clusterIPs() (out []netip.Addr) {
	texts := f.svc.Spec.ClusterIPs
	if len(texts) == 0 {
		texts = []string{f.svc.Spec.ClusterIP}
	}
	for _, text := range texts {
		if ip, err := netip.ParseAddr(text); err == nil {
			out = append(out, ip)
		}
	}
	return out
}

// entered reports whether a ClusterIP of a source can be called from where its mirror is.
func (f from) entered(ip netip.Addr) bool {
	return f.cluster.Offered == nil || slices.ContainsFunc(f.cluster.Entered, func(p netip.Prefix) bool { return p.Contains(ip) })
}

// noClusterIP returns why no mirror can lead to the ClusterIP of a source; empty if one can.
func (f from) noClusterIP() (reason, message string) {
	if f.svc.Spec.ClusterIP == corev1.ClusterIPNone {
		return policy.NotSupported, "it is headless, so there is no ClusterIP; write endpoints: pods"
	}
	switch ips := f.clusterIPs(); {
	case slices.ContainsFunc(ips, f.entered), f.cluster.Offered == nil:
		return "", ""
	case len(ips) == 0:
		return policy.NoEntry, fmt.Sprintf("cluster %s does not publish its ClusterIP, or publishes one outside the pin; write endpoints: clusterIP there too, "+
			"and pin its range of ClusterIPs here, as in strait clusterset connect --pods %[1]s=PODS,CLUSTERIPS", f.cluster.ID)
	default:
		return policy.NoEntry, fmt.Sprintf("no node of cluster %s is the entry to %s; set annotation %s of a Node there to the range of ClusterIPs, which must not overlap this cluster's, "+
			"and pin it here, as in strait clusterset connect --pods %[1]s=PODS,CLUSTERIPS", f.cluster.ID, ips[0], object.AnnotationClusterIPs)
	}
}

// slices are the EndpointSlices of a source, without those that strait wrote.
func (f from) slices() []*discoveryv1.EndpointSlice { return f.cluster.sources[nameOf(f.svc)] }

// ready reports whether an endpoint of a source is.
func (f from) ready() bool {
	return slices.ContainsFunc(f.slices(), anyReady)
}
