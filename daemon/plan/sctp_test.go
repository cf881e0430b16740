package plan_test

import (
	"slices"
	"testing"

	"strait.io/strait/clustermesh"
	"strait.io/strait/internal/l4"
	"strait.io/strait/internal/problem"
)

// An importing cluster says at once that a port is not served; the import's other ports are.
func TestPlanRefusesSCTP(t *testing.T) {
	s := clusterset()
	signal := clustermesh.ServicePort{Name: "signal", Proto: l4.SCTP, Port: 2905}
	for _, c := range []string{"a", "b", "c"} {
		edit(&s, c, "", func(c *clustermesh.Content) { c.Exports[0].Ports = []clustermesh.ServicePort{http, signal} })
	}
	r := planFor(s)
	if len(r.Desired.Frontends) != 1 || r.Desired.Frontends[0].Addr != l4.New(vip, http.Port, l4.TCP) || len(r.Desired.Frontends[0].Backends) == 0 {
		t.Errorf("frontends %+v, want one for %s", r.Desired.Frontends, http)
	}
	const want = "ServiceImport default/serve: ports[signal:2905/SCTP]: SCTP has no socket load balancing: this port is not served; " +
		"use TCP or UDP, or reach the pods by a headless service"
	i := slices.IndexFunc(r.Problems, func(p clustermesh.Problem) bool { return p.Code == problem.PortNotServed })
	if i < 0 || r.Problems[i].String() != want || !r.Problems[i].Warning {
		t.Errorf("problems %v, want %q", r.Problems, want)
	}
}
