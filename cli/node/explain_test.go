package node

import (
	"testing"

	"strait.io/strait/daemon/api"
)

func TestExplainMarksTheLastResort(t *testing.T) {
	rows := explainRows(api.Frontend{Endpoints: []api.Endpoint{
		{Tier: "node", Ready: false, Share: 1, Reason: "terminating"}, {Tier: "node", Ready: false, Reason: "not ready"}}})
	if got := rows[0][7] + ", " + rows[1][7]; got != "! terminating, ✗ not ready" {
		t.Errorf("%q", got)
	}
}
