package api

import (
	"cmp"
	"net/netip"
	"slices"

	"strait.io/strait/internal/l4"
)

// WhatIf is the answer of GET /v1/whatif: where connections would go after a change.
type WhatIf struct {
	Meta
	SeenFrom Viewpoint `json:"seenFrom"`
	// Change is what would happen, in words.
	Change string `json:"change"`
	// Services is how many services were looked at.
	Services int `json:"services"`
	// Alone are the services that only drained endpoints would serve, so that these stay in use.
	Alone []string `json:"alone"`
	// Moved are the frontends whose connections would go elsewhere.
	Moved []Moved `json:"moved"`
}

// Moved is a frontend before and after a change.
type Moved struct {
	Service string  `json:"service"`
	Addr    l4.Addr `json:"addr"`
	Port    string  `json:"port,omitempty"`
	Before  string  `json:"before"`
	After   string  `json:"after"`
	// Endpoints are those whose share would differ, the largest after the change first.
	Endpoints []MovedEndpoint `json:"endpoints"`
}

// MovedEndpoint is an endpoint whose share of new connections would differ.
type MovedEndpoint struct {
	Addr    netip.AddrPort `json:"addr"`
	Cluster string         `json:"cluster"`
	Node    string         `json:"node,omitempty"`
	Pod     string         `json:"pod,omitempty"`
	// Before and After are shares, 0 to 1.
	Before float64 `json:"before"`
	After  float64 `json:"after"`
	// Overloaded is true if it would get more than it can bear: more than factor times its share
	// before. If it had none, it bears what the endpoint with the largest share did.
	Overloaded bool   `json:"overloaded"`
	Reason     string `json:"reason"`
}

// NewWhatIf compares services before and after a change. Factor is how many times its share an
// endpoint can bear; 0 counts none as overloaded.
func NewWhatIf(from Viewpoint, change string, before, after []Service, factor float64) *WhatIf {
	w := &WhatIf{Meta: Meta{APIVersion, KindWhatIf}, SeenFrom: from, Change: change, Services: len(before), Alone: []string{}, Moved: []Moved{}}
	then := map[string]Service{}
	for _, s := range after {
		then[s.Name+s.Type] = s
	}
	for _, s := range after {
		if slices.ContainsFunc(s.Frontends, alone) {
			w.Alone = append(w.Alone, s.Name)
		}
	}
	for _, s := range before {
		for i, f := range s.Frontends {
			g := Frontend{Addr: f.Addr}
			if fs := then[s.Name+s.Type].Frontends; i < len(fs) && fs[i].Addr == f.Addr {
				g = fs[i]
			}
			if es := moved(f, g, factor); len(es) > 0 {
				w.Moved = append(w.Moved, Moved{s.Name, f.Addr, f.Port, f.Destination(), g.Destination(), es})
			}
		}
	}
	return w
}

// Explain replaces the reasons of endpoints that the change itself takes away: the plan knows them
// only as pods that are not ready. Reason returns an empty string for all others.
func (w *WhatIf) Explain(reason func(cluster, node string) string) {
	for _, m := range w.Moved {
		for i := range m.Endpoints {
			e := &m.Endpoints[i]
			e.Reason = cmp.Or(reason(e.Cluster, e.Node), e.Reason)
		}
	}
}

// alone reports whether a frontend uses endpoints that are drained.
func alone(f Frontend) bool {
	return slices.ContainsFunc(f.Endpoints, func(e Endpoint) bool { return e.Share > 0 && e.Drained >= 1 })
}

func moved(before, after Frontend, factor float64) (out []MovedEndpoint) {
	was, most := map[netip.AddrPort]Endpoint{}, 0.0
	for _, e := range before.Endpoints {
		was[e.Addr] = e
		most = max(most, e.Share)
	}
	add := func(e Endpoint, before, after float64) {
		if diff := after - before; diff > 0.0005 || diff < -0.0005 {
			bears := factor * before
			if before == 0 {
				bears = factor * most
			}
			out = append(out, MovedEndpoint{e.Addr, e.Cluster, e.Node, e.Pod, before, after, bears > 0 && after > bears+0.0005, e.Reason})
		}
	}
	for _, e := range after.Endpoints {
		add(e, was[e.Addr].Share, e.Share)
		delete(was, e.Addr)
	}
	for _, e := range was {
		e.Reason = "gone"
		add(e, e.Share, 0)
	}
	slices.SortFunc(out, func(a, b MovedEndpoint) int {
		return cmp.Or(cmp.Compare(b.After, a.After), cmp.Compare(b.Before, a.Before), a.Addr.Compare(b.Addr))
	})
	return out
}
