package ciliumshape

import (
	"encoding/binary"
	"net/netip"

	"strait.io/strait/datapath"
	"strait.io/strait/internal/l4"
)

// table is the map that a write is for.
type table int

const (
	inServices table = iota
	inBackends
)

// write is one update of an element, or its deletion if value is nil.
type write struct {
	in         table
	key, value any
}

// agent knows what the maps hold, and decides what to write. It does I/O nowhere.
type agent struct {
	services map[l4.Addr]*service
	backends map[l4.Addr]*backend
	lastID   uint32
}

type service struct {
	revNat   uint16
	frontend datapath.Frontend
}

// backend is an element of the map of backends. All services with this address share it.
type backend struct {
	id    uint32
	users int
	// as is what the element was last written for; the map holds its address and port alone.
	as datapath.Backend
}

func newAgent() *agent {
	return &agent{services: map[l4.Addr]*service{}, backends: map[l4.Addr]*backend{}}
}

// change returns the writes for a frontend, in the order of Cilium's agent: delete backends that no
// service has any more, write new and changed backends, write all slots again, write the service
// with its count, delete the slots above it. So a new slot is complete before the count covers it,
// and a connect() in the middle of a change can find a slot whose backend is gone.
func (a *agent) change(want datapath.Frontend) (out []write) {
	s := a.services[want.Addr]
	if s == nil {
		s = &service{revNat: uint16(len(a.services) + 1)}
		a.services[want.Addr] = s
	}
	old := s.frontend
	if old.Addr.IP.IsValid() && old.Equal(want) {
		return nil
	}
	s.frontend = want
	proto := want.Addr.Proto
	for _, b := range want.Backends {
		a.use(addrOf(b, proto))
	}
	for _, b := range old.Backends {
		if key, gone := a.release(addrOf(b, proto)); gone {
			out = append(out, write{inBackends, key, nil})
		}
	}
	for _, b := range want.Backends {
		if have := a.backends[addrOf(b, proto)]; have.as != b {
			have.as = b
			out = append(out, write{inBackends, have.id, backendValue(b, proto)})
		}
	}
	return append(out, a.slots(s, len(old.Backends))...)
}

// slots returns the writes of a service's slots, of the service itself, and of what is left of had
// slots.
func (a *agent) slots(s *service, had int) (out []write) {
	at := s.frontend.Addr
	for i, b := range s.frontend.Backends {
		id := a.backends[addrOf(b, at.Proto)].id
		out = append(out, write{inServices, serviceKey(at, i+1), shapeService{BackendId: id, RevNatIndex: s.revNat}})
	}
	count := len(s.frontend.Backends)
	out = append(out, write{inServices, serviceKey(at, 0), shapeService{Count: uint16(count), RevNatIndex: s.revNat}})
	for i := count; i < had; i++ {
		out = append(out, write{inServices, serviceKey(at, i+1), nil})
	}
	return out
}

func (a *agent) use(at l4.Addr) {
	b := a.backends[at]
	if b == nil {
		a.lastID++
		b = &backend{id: a.lastID}
		a.backends[at] = b
	}
	b.users++
}

// release returns the backend's ID, and whether no service uses it any more.
func (a *agent) release(at l4.Addr) (id uint32, gone bool) {
	b := a.backends[at]
	if b.users--; b.users > 0 {
		return b.id, false
	}
	delete(a.backends, at)
	return b.id, true
}

func addrOf(b datapath.Backend, p l4.Proto) l4.Addr { return l4.New(b.IP, b.Port, p) }

func serviceKey(at l4.Addr, slot int) shapeServiceKey {
	return shapeServiceKey{Addr: inMemory(at.IP), Port: swapped(at.Port), Slot: uint16(slot), Proto: uint8(at.Proto)}
}

func backendValue(b datapath.Backend, p l4.Proto) shapeBackend {
	return shapeBackend{Addr: inMemory(b.IP), Port: swapped(b.Port), Proto: uint8(p)}
}

// inMemory returns an IPv4 address as the programs hold it: in network order.
func inMemory(a netip.Addr) uint32 { b := a.As4(); return binary.NativeEndian.Uint32(b[:]) }

// swapped returns a port in network order. The object is little endian only.
func swapped(port uint16) uint16 { return port<<8 | port>>8 }
