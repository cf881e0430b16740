package objects

import (
	"fmt"
	"testing"

	"strait.io/strait/clustermesh"
	"strait.io/strait/clustermesh/locality"
	"strait.io/strait/daemon/plan"
	"strait.io/strait/internal/l4"
)

// The port and family that lacks most stands for all; a family that the cluster's pods do not have counts
// only if they have none.
func TestLocalOf(t *testing.T) {
	of := func(port uint16, f clustermesh.Family, healthy, expected int, share, whole float64) plan.Outlook {
		return plan.Outlook{Port: clustermesh.ServicePort{Proto: l4.TCP, Port: port}, Family: f, Own: locality.Part{Expected: expected, Healthy: healthy, Share: share}, Whole: whole}
	}
	v4, v6 := clustermesh.IPv4, clustermesh.IPv6
	for _, c := range []struct {
		name string
		all  []plan.Outlook
		want string
	}{
		{"nothing", nil, "<nil>"},
		{"no endpoint of any family", []plan.Outlook{of(80, v4, 0, 0, 0, 0), of(80, v6, 0, 0, 0, 0)}, "0/0 0.0 of 0.0 "},
		{"no endpoint of one", []plan.Outlook{of(80, v4, 2, 2, 1, 1), of(80, v6, 0, 0, 0, 0)}, "2/2 1.0 of 1.0 "},
		{"ports alike", []plan.Outlook{of(80, v4, 1, 2, 0.5, 1), of(81, v4, 1, 2, 0.5, 1)}, "1/2 0.5 of 1.0 "},
		{"one spills", []plan.Outlook{of(80, v4, 2, 2, 1, 1), of(81, v4, 1, 2, 0.5, 1)}, "1/2 0.5 of 1.0 81/TCP"},
		{"one has none", []plan.Outlook{of(80, v4, 1, 2, 0, 1), of(81, v4, 0, 2, 0, 0), of(82, v4, 1, 2, 0, 1)}, "0/2 0.0 of 0.0 81/TCP"},
	} {
		got := "<nil>"
		if l := localOf(c.all); l != nil {
			got = fmt.Sprintf("%d/%d %.1f of %.1f %s", l.Healthy, l.Expected, l.Share, l.Whole, l.Port)
		}
		if got != c.want {
			t.Errorf("%s: %q, want %q", c.name, got, c.want)
		}
	}
}

func TestHeadlessLocal(t *testing.T) {
	e := func(c clustermesh.ClusterName, ready, terminating, dead bool) clustermesh.ClusterEndpoint {
		return clustermesh.ClusterEndpoint{Cluster: c, Dead: dead, Endpoint: clustermesh.Endpoint{Ready: ready, Terminating: terminating}}
	}
	l := headlessLocal("a", []clustermesh.ClusterEndpoint{
		e("a", true, false, false), e("a", false, false, false), e("a", true, false, true), e("a", false, true, false),
		e("c", true, false, false), e("b", true, false, false), e("d", false, false, false),
	})
	if got := fmt.Sprintf("%d/%d %v %v", l.Healthy, l.Expected, l.Others, l.Headless); got != "1/3 [b c] true" {
		t.Errorf("%s", got)
	}
}
