package cluster

import (
	"fmt"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// What the CLI compares between clusters is what the daemons will claim, as far as objects show.
func TestPodCIDRs(t *testing.T) {
	for _, tc := range []struct {
		annotation string
		spec       corev1.NodeSpec
		want       string
	}{
		{"", corev1.NodeSpec{PodCIDR: "10.1.1.0/24", PodCIDRs: []string{"10.1.1.0/24", "fd00:1::/64"}}, "[10.1.1.0/24 fd00:1::/64]"},
		{"", corev1.NodeSpec{PodCIDR: "10.1.1.0/24"}, "[10.1.1.0/24]"},
		{"10.9.1.0/24, fd09:1::/64", corev1.NodeSpec{PodCIDR: "10.1.1.0/24"}, "[10.9.1.0/24 fd09:1::/64]"},
	} {
		n := &corev1.Node{ObjectMeta: metav1.ObjectMeta{Annotations: map[string]string{"strait.io/prefixes": tc.annotation}}, Spec: tc.spec}
		if got := fmt.Sprint(podCIDRs(n)); got != tc.want {
			t.Errorf("%q: %s, want %s", tc.annotation, got, tc.want)
		}
	}
}

// TestLabels: nodes without the label count as one more place, so that the pin has it too.
func TestLabels(t *testing.T) {
	node := func(region string) corev1.Node {
		return corev1.Node{ObjectMeta: metav1.ObjectMeta{Labels: map[string]string{corev1.LabelTopologyRegion: region}}}
	}
	for want, nodes := range map[string][]corev1.Node{
		"[eu us]": {node("us"), node("eu"), node("us")},
		"[ us]":   {node("us"), {}},
		"[]":      nil,
	} {
		if got := fmt.Sprint(labels(nodes, corev1.LabelTopologyRegion)); got != want {
			t.Errorf("regions %s, want %s", got, want)
		}
	}
}
