package object

import (
	"reflect"
	"testing"

	corev1 "k8s.io/api/core/v1"

	"strait.io/strait/clustermesh"
)

// TestDrainCordoned: a cordoned Node is drained if the configuration says so. Its annotation goes before.
func TestDrainCordoned(t *testing.T) {
	node := func(name string, cordoned bool, annotations map[string]string) *corev1.Node {
		n := &corev1.Node{ObjectMeta: meta("", name), Spec: corev1.NodeSpec{Unschedulable: cordoned}}
		n.Annotations = annotations
		return n
	}
	nodes := []*corev1.Node{
		node("n1", false, nil), node("n2", true, nil),
		node("n3", true, map[string]string{AnnotationDrain: "2026-11-23T12:00:00Z/5m"}),
	}
	slow := clustermesh.NodeDrain{Node: "n3", Drain: clustermesh.Drain{Since: 1795435200, Over: 300}}
	for cordoned, want := range map[bool][]clustermesh.NodeDrain{
		false: {slow},
		true:  {{Node: "n2"}, slow},
	} {
		l := typed{Nodes: nodes, Config: Config{DrainCordoned: cordoned}}.local()
		if got := l.ClusterContent(nil, nil).Drains; !reflect.DeepEqual(got, want) {
			t.Errorf("with drainCordoned %t: %v, want %v", cordoned, got, want)
		}
	}
}
