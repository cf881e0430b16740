package kube

import (
	"context"
	"fmt"
	"strings"
	"testing"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"strait.io/strait/internal/testutil"
)

// TestPolicyMirrors: a policy that mirrors makes a Service of the plain name, which any client of the
// other cluster reaches. Its endpoints follow the pods; a Service that is there already stays; it
// goes with the policy.
func TestPolicyMirrors(t *testing.T) {
	t.Parallel()
	c1, c2 := clusterset(t)
	c1.serve(service(withTargets))
	c1.serve(service(withTargets, named("taken")))
	own := c2.serve(service(withTargets, named("taken")))
	c1.pods(1)
	name := "m" + c1.ns[strings.LastIndex(c1.ns, "-")+1:]
	text := fmt.Sprintf(`apiVersion: strait.io/v1alpha1
kind: ServicePolicy
metadata: {name: %s}
spec:
  from: [c1]
  to: [c2]
  as: mirror
  select: [{namespaces: [%s]}]
`, name, c1.ns)
	for _, m := range []*member{c1, c2} {
		must(t, m.lab.Apply(t.Context(), m.name, text))
		t.Cleanup(func() {
			if _, err := m.lab.Kubectl(context.Background(), m.name, nil, "delete", "servicepolicy", name, "--ignore-not-found"); err != nil {
				t.Error(err)
			}
		})
	}
	plain := "hello." + c2.ns + ".svc.cluster.local:42"
	c2.answered(plain, "c1")
	for _, n := range []int32{3, 0, 1} {
		c1.pods(n)
		testutil.Eventually(t, within, func() error { return c2.wrap(equal("ready endpoints", c2.mirrored("hello"), int(n))) })
	}
	c2.answered(plain, "c1")
	s, err := c2.core.CoreV1().Services(c2.ns).Get(t.Context(), "hello", metav1.GetOptions{})
	must(t, err)
	must(t, equal("labels", s.Labels["dummy-svc"]+" "+s.Labels["strait.io/policy"], "dummy "+name))
	must(t, c2.absent("hello")) // it is no import
	still, err := c2.core.CoreV1().Services(c2.ns).Get(t.Context(), "taken", metav1.GetOptions{})
	must(t, err)
	must(t, equal("the Service that was there", still.ResourceVersion, own.ResourceVersion))
	testutil.Eventually(t, within, func() error {
		got := kubectl(t, "c2", "get", "servicepolicy", name, "-o", "jsonpath={.status.mirrored} {.status.skipped[*].reason} {.status.conditions[0].reason}")
		return c2.wrap(equal("status of the policy", got, "1 TargetExists SomeSkipped"))
	})

	kubectl(t, "c2", "delete", "servicepolicy", name)
	testutil.Eventually(t, within, func() error {
		_, err := c2.core.CoreV1().Services(c2.ns).Get(t.Context(), "hello", metav1.GetOptions{})
		if !apierrors.IsNotFound(err) {
			return fmt.Errorf("c2 still has the mirror: %v", err)
		}
		return equal("ready endpoints", c2.mirrored("hello"), 0)
	})
}

// mirrored counts the ready endpoints of a mirror, as EndpointSlices list them for TCP.
func (m *member) mirrored(service string) (ready int) {
	m.t.Helper()
	list, err := m.core.DiscoveryV1().EndpointSlices(m.ns).List(m.t.Context(), metav1.ListOptions{LabelSelector: "kubernetes.io/service-name=" + service})
	must(m.t, err)
	for _, s := range list.Items {
		for _, e := range s.Endpoints {
			if e.Conditions.Ready == nil || *e.Conditions.Ready {
				ready++
			}
		}
	}
	return ready
}
