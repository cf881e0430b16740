package mcs

import (
	"net/netip"
	"slices"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"strait.io/strait/clustermesh"
	"strait.io/strait/clustermesh/written"
)

// The ClusterSetIP is the import's for life, even if a user deletes the derived Service.
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
				if o.Service() != nil && o.Verb == written.Create && slices.Equal(o.Service().Spec.ClusterIPs, before.IPs) {
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
		if o.Service() != nil && len(o.Service().Spec.ClusterIPs) > 0 {
			t.Errorf("asks for %v", o.Service().Spec.ClusterIPs)
		}
	}
}

// An import keeps its addresses when the clusters of their family leave: then it shows that nothing is behind them.
func TestReady_NotByAddressesOfAnotherFamily(t *testing.T) {
	four, six := clustermesh.IPv4, clustermesh.IPv6
	of := func(fs ...clustermesh.Family) func(*clustermesh.Export) {
		return func(e *clustermesh.Export) { e.Families = fs }
	}
	for name, c := range map[string]struct {
		dual   bool
		is     View
		status metav1.ConditionStatus
	}{
		"only the other family": {is: viewOf(exportOf("c2", 2, of(six))).change(pod("c2", "fd02::1", 80)), status: metav1.ConditionFalse},
		"both families":         {is: viewOf(exportOf("c2", 2, of(six, four))), status: metav1.ConditionTrue},
		"a younger export's": {is: viewOf(exportOf("c2", 2, of(six)), exportOf("c3", 3, of(four))).
			change(pod("c2", "fd02::1", 80)).change(pod("c3", "10.3.0.1", 80)), status: metav1.ConditionTrue},
		"a cluster of two families": {dual: true, is: viewOf(exportOf("c2", 2, of(six))), status: metav1.ConditionTrue},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t)
			if c.dual {
				w.families = []corev1.IPFamily{corev1.IPv4Protocol, corev1.IPv6Protocol}
			}
			w.settle(viewOf(exportOf("c1", 1, of(four)), exportOf("c2", 2, of(six))), serve)
			ip := w.imports["default/serve"].Spec.IPs[0]
			ops := w.settle(c.is, serve)
			got := condition(w.imports["default/serve"].Status.Conditions, "Ready")
			if got.Status != c.status {
				t.Fatalf("Ready: %+v", got)
			}
			if c.status == metav1.ConditionTrue {
				return
			}
			for _, word := range []string{ip, "c2", "IPv4", "IPv6"} {
				if !strings.Contains(got.Message, word) {
					t.Errorf("message %q: want %s in it", got.Message, word)
				}
			}
			if got.Reason != "IPFamilyNotSupported" || events(ops, got.Reason) != 1 {
				t.Errorf("reason %s, events %d", got.Reason, events(ops, got.Reason))
			}
			w.settle(viewOf(exportOf("c1", 1, of(four)), exportOf("c2", 2, of(six))), serve)
			if i := w.imports["default/serve"]; condition(i.Status.Conditions, "Ready").Status != metav1.ConditionTrue || i.Spec.IPs[0] != ip {
				t.Errorf("when the first is back: %+v %+v", i.Spec, i.Status)
			}
		})
	}
}
