package kube

import (
	"testing"
	"time"

	coordinationv1 "k8s.io/api/coordination/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"
)

// TestClaim: a node renews its own Lease. It takes one that nobody holds, and that of another node
// only if that has not renewed it in time.
func TestClaim(t *testing.T) {
	now := time.Unix(1_700_000_000, 0)
	lease := func(holder string, seconds, transitions int32) *coordinationv1.Lease {
		return &coordinationv1.Lease{
			ObjectMeta: metav1.ObjectMeta{Name: LeaseName, ResourceVersion: "7", Labels: map[string]string{"team": "a"}},
			Spec: coordinationv1.LeaseSpec{
				HolderIdentity: &holder, LeaseDurationSeconds: &seconds, LeaseTransitions: &transitions,
				AcquireTime: new(metav1.NewMicroTime(now.Add(-time.Hour))), RenewTime: new(metav1.NewMicroTime(now.Add(-time.Minute))),
			},
		}
	}
	for _, tc := range []struct {
		name        string
		have        *coordinationv1.Lease
		unchanged   time.Duration
		claimed     bool
		acquired    bool
		transitions int32
	}{
		{"there is none", &coordinationv1.Lease{}, time.Hour, true, true, 0},
		{"its own", lease("n1", 6, 3), 0, true, false, 3},
		{"its own, long ago", lease("n1", 6, 3), time.Hour, true, false, 3},
		{"of another node", lease("n2", 6, 3), 5 * time.Second, false, false, 3},
		{"of another node, which is gone", lease("n2", 6, 3), 6 * time.Second, true, true, 4},
		{"of one that takes its time", lease("n2", 15, 3), 14 * time.Second, false, false, 3},
		{"given up", lease("", 1, 3), 0, true, true, 4},
		{"written by a person", &coordinationv1.Lease{ObjectMeta: metav1.ObjectMeta{ResourceVersion: "1"}}, 0, true, true, 1},
		{"of another node, without a duration", &coordinationv1.Lease{Spec: coordinationv1.LeaseSpec{HolderIdentity: new("n2")}, ObjectMeta: metav1.ObjectMeta{ResourceVersion: "1"}}, 0, true, true, 1},
	} {
		t.Run(tc.name, func(t *testing.T) {
			got := tc.have.DeepCopy()
			if claimed := claim(got, "n1", tc.unchanged, now); claimed != tc.claimed {
				t.Fatalf("claimed %v, want %v", claimed, tc.claimed)
			}
			if !tc.claimed {
				if *got.Spec.HolderIdentity != *tc.have.Spec.HolderIdentity || !got.Spec.RenewTime.Equal(tc.have.Spec.RenewTime) {
					t.Errorf("it was changed to %v", got.Spec)
				}
				return
			}
			s := got.Spec
			if *s.HolderIdentity != "n1" || !s.RenewTime.Time.Equal(now) || *s.LeaseDurationSeconds != 6 || ptr.Deref(s.LeaseTransitions, 0) != tc.transitions {
				t.Errorf("it says %v", s)
			}
			if acquired := s.AcquireTime.Time.Equal(now); acquired != tc.acquired {
				t.Errorf("acquired now: %v, want %v", acquired, tc.acquired)
			}
			if len(got.Labels) != len(tc.have.Labels) {
				t.Errorf("its labels are %v", got.Labels)
			}
		})
	}
}
