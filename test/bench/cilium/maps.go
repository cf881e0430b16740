package cilium

import (
	"encoding/binary"
	"structs"

	"strait.io/strait/internal/l4"
)

// table is the map that a write is for.
type table int

const (
	inServices table = iota
	inBackends
	inReverse
	inAffinity
)

// mapNames are the maps that the agent writes for a ClusterIP, by the names that Cilium gives them.
var mapNames = map[table]string{
	inServices: "cilium_lb4_services_v2",
	inBackends: "cilium_lb4_backends_v3",
	inReverse:  "cilium_lb4_reverse_nat",
	inAffinity: "cilium_lb_affinity_match",
}

// socketsMap is the LRU map of sockets, which the programs write.
const socketsMap = "cilium_lb4_reverse_sk"

// write is one update of an element, or its deletion if value is nil.
type write struct {
	in         table
	key, value any
}

// serviceKey is struct lb4_key. Slot 0 is the service itself; slots from 1 on hold its backends.
type serviceKey struct {
	_            structs.HostLayout
	Addr         [4]byte
	Port         [2]byte // network order, like all ports here
	Slot         uint16
	Proto, Scope uint8
	Pad          [2]uint8
}

// serviceValue is struct lb4_service. Flags are 0 for a ClusterIP without affinity.
type serviceValue struct {
	_             structs.HostLayout
	Backend       uint32
	Count         uint16
	ID            [2]byte // rev_nat_index, in network order
	Flags, Flags2 uint8
	Inactive      uint16 // qcount
}

// backendValue is struct lb4_backend.
type backendValue struct {
	_            structs.HostLayout
	Addr         [4]byte
	Port         [2]byte
	Proto, Flags uint8
	Cluster      uint16
	Zone, Pad    uint8
}

// terminating is BackendStateTerminatingFlag; an active backend has 0.
const terminating = 1

// reverseValue is struct lb4_reverse_nat. Its key is the service's ID in network order.
type reverseValue struct {
	_    structs.HostLayout
	Addr [4]byte
	Port [2]byte
}

// affinityKey is struct lb_affinity_match.
type affinityKey struct {
	_       structs.HostLayout
	Backend uint32
	ID      [2]byte
	Pad     uint16
}

func keyOf(at l4.Addr, slot int) serviceKey {
	return serviceKey{Addr: at.IP.As4(), Port: network(at.Port), Slot: uint16(slot), Proto: uint8(at.Proto)}
}

func slotOf(backend uint32, service uint16) serviceValue {
	return serviceValue{Backend: backend, ID: network(service)}
}

func backendOf(e endpoint, proto l4.Proto) backendValue {
	v := backendValue{Addr: e.IP.As4(), Port: network(e.Port), Proto: uint8(proto)}
	if e.terminating {
		v.Flags = terminating
	}
	return v
}

func reverseOf(at l4.Addr) reverseValue {
	return reverseValue{Addr: at.IP.As4(), Port: network(at.Port)}
}

// network returns a number in network order.
func network(n uint16) (out [2]byte) {
	binary.BigEndian.PutUint16(out[:], n)
	return out
}
