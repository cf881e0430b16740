package plan_test

import (
	"strait.io/strait/clustermesh"
	"strait.io/strait/daemon/plan"
)

// series plans one state after another, each with the Past of the plan before.
type series struct {
	plan.Inputs
	past plan.Past
}

func newSeries(self plan.Self, c plan.Config) *series {
	return &series{Inputs: plan.Inputs{Self: self, Config: c}}
}

func (p *series) plan(s clustermesh.State) (r plan.Result) {
	p.State = s
	r, p.past = plan.Plan(p.Inputs, p.past)
	return r
}

// once plans without a past.
func once(s clustermesh.State, self plan.Self, c plan.Config) plan.Result {
	return newSeries(self, c).plan(s)
}
