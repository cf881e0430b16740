package daemon

import (
	"time"

	"strait.io/strait/clustermesh"
	"strait.io/strait/daemon/api"
	"strait.io/strait/daemon/plan"
	"strait.io/strait/internal/problem"
)

// errStarting means that there is no plan yet.
var errStarting = problem.Refuse("wait for it: strait status --wait", "straitd has started but has no plan yet")

// planFor plans for any node, with what this node knows and its configuration.
func (d *Daemon) planFor(self plan.Self, s clustermesh.State) plan.Result {
	in := plan.Inputs{State: s, Self: self, Config: d.planConfig(), Now: time.Now()}
	if self == d.self() { // others have tunnels of their own
		h, _ := d.kernel.health()
		in.Faults = h.Faults()
	}
	if self.Cluster == d.self().Cluster { // what this node measured goes for its neighbours
		in.Far = d.far()
	}
	r, _ := plan.Plan(in, plan.Past{})
	return r
}

// ServicesFrom lists the services as another node would use them. What kernels hold and count is not
// in it.
func (d *Daemon) ServicesFrom(node string) (*api.ServiceList, error) {
	m := d.now()
	if m == nil {
		return nil, errStarting
	}
	self, err := plan.From(m.state, d.self(), node)
	if err != nil {
		return nil, err
	}
	if self == d.self() {
		return d.Services(), nil
	}
	return api.NewServiceList(d.seen(m, self), computed(m, self, d.planFor(self, m.state))), nil
}

// WhatIf returns where connections from a node would go after a change: those to one service, or to all if
// service is empty.
func (d *Daemon) WhatIf(change, service, node string) (*api.WhatIf, error) {
	m := d.now()
	if m == nil {
		return nil, errStarting
	}
	self, err := plan.From(m.state, d.self(), node)
	if err != nil {
		return nil, err
	}
	c, err := plan.ParseChange(change)
	if err != nil {
		return nil, err
	}
	then, err := c.Apply(m.state)
	if err != nil {
		return nil, err
	}
	now := m.result
	if self != d.self() {
		now = d.planFor(self, m.state)
	}
	before, after := only(computed(m, self, now), service), only(computed(m, self, d.planFor(self, then)), service)
	if service != "" && len(before) == 0 {
		return nil, problem.Refuse("list all services: strait services", "no cluster exports a service %s", service)
	}
	w := api.NewWhatIf(d.seen(m, self), c.String(), before, after, d.config.Locality.plan().Factor)
	w.Explain(c.Reason)
	return w, nil
}

func (d *Daemon) seen(m *moment, self plan.Self) api.Viewpoint {
	v := d.viewpoint(m)
	v.Cluster, v.Node, v.Computed = string(self.Cluster), string(self.Node), self != d.self()
	return v
}

// computed returns the services of a plan that no kernel holds.
func computed(m *moment, self plan.Self, r plan.Result) []api.Service {
	v := viewer{moment: &moment{state: m.state, result: r}, self: self}
	v.counted.frontends = r.Desired.Frontends
	return v.services()
}

func only(services []api.Service, name string) (out []api.Service) {
	if name == "" {
		return services
	}
	for _, s := range services {
		if s.Name == name {
			out = append(out, s)
		}
	}
	return out
}
