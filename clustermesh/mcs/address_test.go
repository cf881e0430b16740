package mcs

import (
	"net/netip"
	"slices"
	"testing"

	corev1 "k8s.io/api/core/v1"

	"strait.io/strait/clustermesh"
)

// The ClusterSetIP is the import's for life, whoever deletes the derived Service.
func TestIPs_OutliveTheDerivedService(t *testing.T) {
	four, six := corev1.IPv4Protocol, corev1.IPv6Protocol
	for name, c := range map[string]struct {
		families   []corev1.IPFamily // the cluster's
		was, is    []clustermesh.Family
		taken      bool
		same, ask  int // addresses kept; Creates that ask for them
		ipFamilies []corev1.IPFamily
	}{
		"one family":              {families: []corev1.IPFamily{four}, was: []clustermesh.Family{"IPv4"}, same: 1, ask: 1, ipFamilies: []corev1.IPFamily{four}},
		"two families":            {families: []corev1.IPFamily{six, four}, was: []clustermesh.Family{"IPv4", "IPv6"}, same: 2, ask: 1, ipFamilies: []corev1.IPFamily{six, four}},
		"a family more":           {families: []corev1.IPFamily{four, six}, was: []clustermesh.Family{"IPv4"}, is: []clustermesh.Family{"IPv4", "IPv6"}, same: 1, ask: 1, ipFamilies: []corev1.IPFamily{four, six}},
		"a family less":           {families: []corev1.IPFamily{four, six}, was: []clustermesh.Family{"IPv4", "IPv6"}, is: []clustermesh.Family{"IPv6"}, same: 2, ask: 1, ipFamilies: []corev1.IPFamily{four, six}},
		"another has it by now":   {families: []corev1.IPFamily{four}, was: []clustermesh.Family{"IPv4"}, taken: true, ask: addressTries, ipFamilies: []corev1.IPFamily{four}},
		"another has them by now": {families: []corev1.IPFamily{four, six}, was: []clustermesh.Family{"IPv4", "IPv6"}, taken: true, ask: addressTries, ipFamilies: []corev1.IPFamily{four, six}},
		"the only family stays":   {families: []corev1.IPFamily{four}, was: []clustermesh.Family{"IPv4"}, is: []clustermesh.Family{"IPv6"}, same: 1, ask: 1, ipFamilies: []corev1.IPFamily{four}},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t)
			w.families = c.families
			of := func(fs []clustermesh.Family) View {
				return viewOf(exportOf("c1", 1)).change(func(i *Import) { i.Families = fs })
			}
			w.settle(of(c.was), serve)
			before := w.imports["default/serve"].Spec
			delete(w.services, "default/derived-serve")
			if c.taken {
				w.taken = before.IPs
			}
			if c.is == nil {
				c.is = c.was
			}
			asked := 0
			for _, o := range w.settle(of(c.is), serve) {
				if o.Service != nil && o.Verb == Create && slices.Equal(o.Service.Spec.ClusterIPs, before.IPs) {
					asked++
				}
			}
			after := w.imports["default/serve"].Spec
			same := 0
			for i, ip := range before.IPs {
				if after.IPs[i] == ip {
					same++
				}
			}
			if same != c.same || asked != c.ask || !slices.Equal(after.IPFamilies, c.ipFamilies) {
				t.Errorf("ips were %v and are %v of %v; asked %d times", before.IPs, after.IPs, after.IPFamilies, asked)
			}
		})
	}
}

// Addresses that no derived Service gave are not asked for.
func TestIPs_OfARangeAreNotTheServices(t *testing.T) {
	w := newWorld(t)
	v := viewOf(exportOf("c1", 1))
	v.Config.ClusterSetIPs = IPsCIDR
	w.settle(v.change(func(i *Import) { i.IPs = []netip.Addr{netip.MustParseAddr("241.0.0.1")} }), serve)
	for _, o := range w.settle(viewOf(exportOf("c1", 1)), serve) {
		if o.Service != nil && len(o.Service.Spec.ClusterIPs) > 0 {
			t.Errorf("asks for %v", o.Service.Spec.ClusterIPs)
		}
	}
}
