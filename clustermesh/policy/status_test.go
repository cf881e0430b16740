package policy_test

import (
	"fmt"
	"reflect"
	"strings"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"strait.io/strait/clustermesh"
	"strait.io/strait/clustermesh/policy"
)

// facts are those of a valid policy from c1 to c2, of generation 3.
func facts(change ...func(*policy.Facts)) policy.Facts {
	f := policy.Facts{Name: "p", Generation: 3, Share: &clustermesh.Share{Policy: "p", As: "mirror"}, Spec: policy.Spec{From: []string{"c1"}, To: []string{"c2"}}}
	for _, c := range change {
		c(&f)
	}
	return f
}

// skips returns n Services that are left out.
func skips(n int) (r clustermesh.PolicyResult) {
	for i := range n {
		r.Skip(fmt.Sprintf("c1/shop/s%02d", i), policy.TargetExists, "")
	}
	return r
}

func TestStatus(t *testing.T) {
	var wrong policy.Policy
	bad := facts(func(f *policy.Facts) { f.Mistakes, f.Share = policy.Validate(wrong), nil })
	shared := facts(func(f *policy.Facts) {
		f.Share.Selected, f.Share.Shared, f.Share.Joined = 3, 2, 1
		f.Share.Skip(clustermesh.ServiceName{Namespace: "shop", Name: "old"}, policy.ExternalName, "no endpoints")
	})
	for _, c := range []struct {
		name        string
		facts       policy.Facts
		own         clustermesh.ClusterName
		made        clustermesh.PolicyResult
		ready, want string
	}{
		{"nothing to do", facts(), "c1", clustermesh.PolicyResult{}, "True InForce", "0 0 0 0 skipped 0+0"},
		{"shared", shared, "c1", clustermesh.PolicyResult{}, "True SomeSkipped 1 Service is left out; status.skipped has the reason", "3 2 0 1 skipped 1+0"},
		{"mirrored", facts(), "c2", clustermesh.PolicyResult{Mirrored: 4}, "True InForce", "0 0 4 0 skipped 0+0"},
		{"many skipped", shared, "c1", skips(22),
			"True SomeSkipped 23 Services are left out; status.skipped has the reasons", "3 2 0 1 skipped 20+3"},
		{"neither", facts(), "c3", clustermesh.PolicyResult{}, "True NotConcerned neither spec.from nor spec.to has this cluster, c3", "0 0 0 0 skipped 0+0"},
		{"configured", facts(func(f *policy.Facts) { f.Configured, f.Share = true, nil }), "c1", clustermesh.PolicyResult{},
			"False Overridden replication in the daemon's configuration has a policy of this name, which is used instead", "0 0 0 0 skipped 0+0"},
		{"mistakes", bad, "c1", clustermesh.PolicyResult{}, "False Invalid", "0 0 0 0 skipped 0+0"},
	} {
		s, ok := c.facts.Status(c.own, c.made, time.Unix(100, 5))
		if !ok || len(s.Conditions) != 1 || s.ObservedGeneration != 3 || s.Cluster != string(c.own) {
			t.Fatalf("%s: %+v", c.name, s)
		}
		ready := s.Conditions[0]
		if got := fmt.Sprintln(ready.Status, ready.Reason, ready.Message); !strings.HasPrefix(got, c.ready) || ready.ObservedGeneration != 3 {
			t.Errorf("%s: %s", c.name, got)
		}
		if got := fmt.Sprintf("%d %d %d %d skipped %d+%d", s.Selected, s.Shared, s.Mirrored, s.Joined, len(s.Skipped), s.SkippedMore); got != c.want {
			t.Errorf("%s: %s; want %s", c.name, got, c.want)
		}
	}
	s, _ := bad.Status("c1", clustermesh.PolicyResult{}, time.Unix(100, 0))
	for _, path := range []string{"apiVersion: ", "; spec.from: Required value", "; spec.to: ", "; spec.select: "} {
		if m := s.Conditions[0].Message; !strings.Contains(m, path) {
			t.Errorf("%q does not name %q", m, path)
		}
	}
	unknown := facts(func(f *policy.Facts) { f.Share = nil })
	if s, ok := unknown.Status("c1", clustermesh.PolicyResult{}, time.Unix(100, 0)); ok {
		t.Errorf("nothing is known, and the status is %+v", s)
	}
}

// TestStatusSettles: the same facts make the same status at any time, so that
// writing it leads to no other write.
func TestStatusSettles(t *testing.T) {
	f, made := facts(), skips(3)
	first, _ := f.Status("c2", made, time.Unix(100, 7))
	f.Was = first
	again, _ := f.Status("c2", made, time.Unix(200, 0))
	if !reflect.DeepEqual(again, first) {
		t.Errorf("%+v; then %+v", first, again)
	}
	f.Mistakes = policy.Validate(policy.Policy{})
	if s, _ := f.Status("c2", made, time.Unix(300, 0)); !s.Conditions[0].LastTransitionTime.Equal(&metav1.Time{Time: time.Unix(300, 0)}) {
		t.Errorf("Ready changed at %v", s.Conditions[0].LastTransitionTime)
	}
}
