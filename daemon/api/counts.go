package api

import (
	"net/netip"

	"strait.io/strait/internal/l4"
)

// Traffic is what the kernel counted at a frontend.
type Traffic struct {
	// Service is "namespace/name".
	Service  string
	Frontend l4.Addr
	// Connects and Refused are as in Frontend.
	Connects, Refused uint64
	// Backends are all endpoints considered for the frontend, used or not.
	Backends []BackendTraffic
}

// BackendTraffic is one backend's part of a frontend's traffic.
type BackendTraffic struct {
	Addr     netip.AddrPort
	Cluster  string
	Connects uint64
}

// Gossiped counts the bytes of gossip that a node sent or received (Direction) over "udp" or "tcp".
type Gossiped struct {
	Transport, Direction string
	Bytes                uint64
}

// Written counts the attempts at one kind of write.
type Written struct {
	Verb, Kind string
	Failed     bool
	Count      uint64
}
