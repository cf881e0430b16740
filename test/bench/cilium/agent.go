package cilium

import (
	"cmp"
	"slices"

	"strait.io/strait/datapath"
	"strait.io/strait/internal/l4"
)

// agent holds what Cilium's agent knows of its maps, and decides what to write. It does I/O nowhere.
type agent struct {
	services map[l4.Addr]*service
	backends map[l4.Addr]*backend
	lastID   uint32
}

// service is what the maps hold of one frontend.
type service struct {
	id    uint16
	state state
}

// backend is an element of the map of backends. All services with this address share it.
type backend struct {
	id    uint32
	users int
	// as is what the element was last written for. The map holds only a part of it.
	as endpoint
}

// state is what a frontend should be: its active backends, and those that are terminating.
type state struct {
	frontend datapath.Frontend
	leaving  []datapath.Backend
}

// endpoint is a backend in the condition that Cilium's agent knows it in.
type endpoint struct {
	datapath.Backend
	terminating bool
}

func newAgent() *agent {
	return &agent{services: map[l4.Addr]*service{}, backends: map[l4.Addr]*backend{}}
}

// change returns the writes for a frontend, in the order of updateFrontend in Cilium's
// pkg/loadbalancer/reconciler/bpf_reconciler.go: delete the backends that no other service has, then
// for each backend its element if it is new or changed and its slot, then the reverse entry, the
// service with its count, and delete the slots above it. It returns nothing if nothing changed.
func (a *agent) change(want state) (out []write) {
	at := want.frontend.Addr
	s := a.services[at]
	if s == nil {
		s = &service{id: uint16(len(a.services) + 1)}
		a.services[at] = s
	} else if s.state.equal(want) {
		return nil
	}
	old, now := s.state.sorted(), want.sorted()
	s.state = want
	a.acquire(now, at.Proto)
	out = a.release(s.id, old, at.Proto)
	for i, e := range now {
		b := a.backends[addrOf(e, at.Proto)]
		if b.as != e {
			b.as = e
			out = append(out, write{inBackends, b.id, backendOf(e, at.Proto)})
		}
		out = append(out, write{inServices, keyOf(at, i+1), slotOf(b.id, s.id)},
			write{inAffinity, affinityKey{Backend: b.id, ID: network(s.id)}, nil})
	}
	out = append(out, write{inReverse, network(s.id), reverseOf(at)}, write{inServices, keyOf(at, 0), want.master(s.id)})
	for i := len(now); i < len(old); i++ {
		out = append(out, write{inServices, keyOf(at, i+1), nil})
	}
	return out
}

// acquire counts the service among the users of its backends.
func (a *agent) acquire(now []endpoint, proto l4.Proto) {
	for _, e := range now {
		at := addrOf(e, proto)
		b := a.backends[at]
		if b == nil {
			a.lastID++
			b = &backend{id: a.lastID}
			a.backends[at] = b
		}
		b.users++
	}
}

// release stops counting it among those of its old backends, and returns the deletions of those that
// have no user left.
func (a *agent) release(service uint16, old []endpoint, proto l4.Proto) (out []write) {
	for _, e := range old {
		at := addrOf(e, proto)
		b := a.backends[at]
		if b.users--; b.users > 0 {
			continue
		}
		delete(a.backends, at)
		out = append(out, write{inBackends, b.id, nil},
			write{inAffinity, affinityKey{Backend: b.id, ID: network(service)}, nil})
	}
	return out
}

// sorted returns the backends in the order of their slots: active before terminating, then by
// address and port (sortedBackends).
func (s state) sorted() []endpoint {
	var out []endpoint
	for _, b := range s.frontend.Backends {
		out = append(out, endpoint{Backend: b})
	}
	for _, b := range s.leaving {
		out = append(out, endpoint{Backend: b, terminating: true})
	}
	slices.SortFunc(out, func(x, y endpoint) int {
		if x.terminating != y.terminating {
			if y.terminating {
				return -1
			}
			return 1
		}
		return cmp.Or(x.IP.Compare(y.IP), cmp.Compare(x.Port, y.Port))
	})
	return out
}

func (s state) equal(o state) bool {
	return s.frontend.Equal(o.frontend) && slices.Equal(s.leaving, o.leaving)
}

// master returns the service's own element. Terminating backends are used only if there are no
// others (KEP-1669).
func (s state) master(id uint16) serviceValue {
	active, terminating := len(s.frontend.Backends), len(s.leaving)
	if active == 0 {
		active, terminating = terminating, 0
	}
	return serviceValue{Count: uint16(active), ID: network(id), Inactive: uint16(terminating)}
}

// without returns the state in between, in which the backends that want does not have are
// terminating. That is what a pod's deletion looks like in Kubernetes.
func (s state) without(want datapath.Frontend) state {
	between := state{frontend: want}
	for _, b := range s.frontend.Backends {
		if !slices.ContainsFunc(want.Backends, func(w datapath.Backend) bool { return w.AddrPort() == b.AddrPort() }) {
			between.leaving = append(between.leaving, b)
		}
	}
	return between
}

func addrOf(e endpoint, proto l4.Proto) l4.Addr { return l4.New(e.IP, e.Port, proto) }
