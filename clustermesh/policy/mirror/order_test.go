package mirror_test

import (
	"slices"
	"testing"

	corev1 "k8s.io/api/core/v1"

	"strait.io/strait/clustermesh/policy"
	"strait.io/strait/clustermesh/policy/mirror"
	"strait.io/strait/clustermesh/written"
)

// TestChangesFirst: thousands of new mirrors take minutes, so what changes a mirror that is there is written
// before them. The EndpointSlices of a Service that a user deleted still wait for it.
func TestChangesFirst(t *testing.T) {
	to, ps := cluster("c2"), []policy.Policy{mirroring("p")}
	writes := func(from mirror.Cluster) []written.Op {
		return mirror.Diff(set, mirror.Wanted(set, ps, []mirror.Cluster{from}, to), to, known)
	}
	to = apply(to, writes(cluster("c1", service("deleted", 1, 80), slice("deleted", "10.1.0.1"), service("there", 1, 80), slice("there", "10.1.0.2"))))
	to.Services = slices.DeleteFunc(to.Services, func(s *corev1.Service) bool { return s.Name == "deleted" })

	var got []string
	for _, o := range writes(cluster("c1", service("a-new", 1, 80), slice("a-new", "10.1.0.3"),
		service("deleted", 1, 80), slice("deleted", "10.1.0.9"), service("there", 1, 80), slice("there", "10.1.0.9"))) {
		if o.Service() != nil {
			got = append(got, string(o.Verb)+" Service "+o.Service().Name)
		} else {
			got = append(got, string(o.Verb)+" EndpointSlice of "+o.Slice().Labels["kubernetes.io/service-name"])
		}
	}
	want := []string{"update EndpointSlice of there",
		"create Service a-new", "create EndpointSlice of a-new", "create Service deleted", "update EndpointSlice of deleted"}
	if !slices.Equal(got, want) {
		t.Errorf("writes %q, want %q", got, want)
	}
}
