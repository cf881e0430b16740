package object

import (
	"fmt"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	mcsv1beta1 "sigs.k8s.io/mcs-api/pkg/apis/v1beta1"

	"strait.io/strait/clustermesh/policy"
)

// BenchmarkPolicy reads 5,000 Services that one policy shares, by name or by label, beside as many that
// ServiceExports share.
func BenchmarkPolicy(b *testing.B) {
	const services = 5000
	world := func(policies ...*policy.Policy) Objects {
		objs := shop("east", policies...)
		for i := range services {
			objs.Insert(serviceFrom(&corev1.Service{
				ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: fmt.Sprint("web-", i), Labels: map[string]string{"app": fmt.Sprint("web-", i), "tier": "web"}},
				Spec:       corev1.ServiceSpec{ClusterIP: "10.96.1.1", Ports: []corev1.ServicePort{{Name: "http", Port: 80}}},
			}))
		}
		return objs
	}
	exports := world()
	for i := range services {
		exports.Insert(exportFrom(&mcsv1beta1.ServiceExport{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: fmt.Sprint("web-", i)}}))
	}
	for name, objs := range map[string]Objects{
		"exports": exports,
		"names":   world(sharing("p", 1, func(s *policy.Spec) { s.Select = []policy.Term{{Names: []string{"web-.*"}}} })),
		"labels": world(sharing("p", 1, func(s *policy.Spec) {
			s.Select = []policy.Term{{Labels: &metav1.LabelSelector{MatchLabels: map[string]string{"tier": "web"}}}}
		})),
	} {
		b.Run(name, func(b *testing.B) {
			for b.Loop() {
				if got := len(Local(objs).Exports); got < services {
					b.Fatalf("%d exports", got)
				}
			}
		})
	}
}
