package mcs

import (
	"testing"

	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	mcsv1beta1 "sigs.k8s.io/mcs-api/pkg/apis/v1beta1"
)

// A slice that differs from the wanted one, in whatever strait writes, is not the same; what others add to it is theirs.
func TestSameSlice(t *testing.T) {
	want := &discoveryv1.EndpointSlice{
		ObjectMeta: metav1.ObjectMeta{Name: "s", Labels: map[string]string{mcsv1beta1.LabelServiceName: "serve", mcsv1beta1.LabelSourceCluster: "c1"},
			OwnerReferences: []metav1.OwnerReference{{UID: "1"}}},
		AddressType: "IPv4", Ports: []discoveryv1.EndpointPort{{Name: new("http"), Port: new(int32(80)), Protocol: new(corev1.ProtocolTCP)}},
		Endpoints: []discoveryv1.Endpoint{{Addresses: []string{"10.0.0.1"}, Conditions: discoveryv1.EndpointConditions{Ready: new(true)}}},
	}
	for what, c := range map[string]struct {
		change func(*discoveryv1.EndpointSlice)
		same   bool
	}{
		"nothing":         {func(*discoveryv1.EndpointSlice) {}, true},
		"another's label": {func(s *discoveryv1.EndpointSlice) { s.Labels["theirs"] = "x" }, true},
		"another owner": {func(s *discoveryv1.EndpointSlice) {
			s.OwnerReferences = append(s.OwnerReferences, metav1.OwnerReference{UID: "2"})
		}, true},
		"an empty list":       {func(s *discoveryv1.EndpointSlice) { s.Endpoints[0].DeprecatedTopology = map[string]string{} }, true},
		"no owner":            {func(s *discoveryv1.EndpointSlice) { s.OwnerReferences = nil }, false},
		"a label of ours":     {func(s *discoveryv1.EndpointSlice) { delete(s.Labels, mcsv1beta1.LabelSourceCluster) }, false},
		"the address type":    {func(s *discoveryv1.EndpointSlice) { s.AddressType = "IPv6" }, false},
		"an address":          {func(s *discoveryv1.EndpointSlice) { s.Endpoints[0].Addresses[0] = "10.0.0.2" }, false},
		"not ready":           {func(s *discoveryv1.EndpointSlice) { s.Endpoints[0].Conditions.Ready = new(false) }, false},
		"readiness not known": {func(s *discoveryv1.EndpointSlice) { s.Endpoints[0].Conditions.Ready = nil }, false},
		"a hint": {func(s *discoveryv1.EndpointSlice) {
			s.Endpoints[0].Hints = &discoveryv1.EndpointHints{ForZones: []discoveryv1.ForZone{{Name: "z"}}}
		}, false},
		"a node's hint": {func(s *discoveryv1.EndpointSlice) {
			s.Endpoints[0].Hints = &discoveryv1.EndpointHints{ForNodes: []discoveryv1.ForNode{{Name: "n"}}}
		}, false},
		"a port":       {func(s *discoveryv1.EndpointSlice) { s.Ports[0].Port = new(int32(81)) }, false},
		"no endpoints": {func(s *discoveryv1.EndpointSlice) { s.Endpoints = nil }, false},
	} {
		have := want.DeepCopy()
		c.change(have)
		if got := sameSlice(SliceFrom(have), want); got != c.same {
			t.Errorf("%s: same is %t", what, got)
		}
	}
}
