package main

import (
	"encoding/binary"
	"math/rand/v2"
	"net"
	"net/netip"
	"slices"

	"strait.io/strait/datapath"
	"strait.io/strait/internal/l4"
)

// The addresses of the bench. All pods are local, and one server on the wildcard address answers
// for them.
var (
	clientIP     = netip.MustParseAddr("10.128.0.1")
	serviceRange = netip.MustParsePrefix("10.96.0.0/12")
	podRange     = netip.MustParsePrefix("10.128.0.0/9")
	podRange6    = netip.MustParsePrefix("fd00:128::/64")
	// podIPs is the pods' range in kube-proxy's rules.
	podIPs = "10.128.0.0/9"
)

const (
	servicePort = 80
	podPort     = 8080
)

func mask(p netip.Prefix) net.IPMask { return net.CIDRMask(p.Bits(), p.Addr().BitLen()) }

// nth returns the n-th address after a.
func nth(a netip.Addr, n int) netip.Addr {
	b := a.As4()
	binary.BigEndian.PutUint32(b[:], binary.BigEndian.Uint32(b[:])+uint32(n))
	return netip.AddrFrom4(b)
}

// world is the set of frontends that are loaded, each with its own backends.
type world struct {
	frontends []datapath.Frontend
	random    *rand.Rand
}

func newWorld(proto l4.Proto, frontends, backends int) *world {
	w := &world{random: rand.New(rand.NewPCG(1, 2))}
	pod := nth(podRange.Addr(), 256)
	for i := range frontends {
		f := datapath.Frontend{Addr: l4.New(nth(serviceRange.Addr(), 256+i), servicePort, proto)}
		for range backends {
			f.Backends = append(f.Backends, datapath.Backend{IP: pod, Port: podPort, Weight: 1})
			pod = pod.Next()
		}
		w.frontends = append(w.frontends, f)
	}
	return w
}

// pattern says which frontends are dialled.
type pattern struct {
	name string
	// frontend draws the next frontend to dial.
	frontend func(w *world) datapath.Frontend
}

var (
	hot    = pattern{"hot", func(w *world) datapath.Frontend { return w.frontends[len(w.frontends)/2] }}
	random = pattern{"random", func(w *world) datapath.Frontend { return w.frontends[w.random.IntN(len(w.frontends))] }}
)

// suffix ends the metrics of the pattern.
func (p pattern) suffix() string { return map[string]string{"hot": "", "random": "_random"}[p.name] }

// through draws a frontend's address.
func (p pattern) through(w *world) netip.AddrPort {
	a := p.frontend(w).Addr
	return netip.AddrPortFrom(a.IP, a.Port)
}

// direct draws the address of a backend, with the same distribution over frontends.
func (p pattern) direct(w *world) netip.AddrPort {
	bs := p.frontend(w).Backends
	return bs[w.random.IntN(len(bs))].AddrPort()
}

// fixed draws a frontend's first backend, so that there are as many different addresses as
// frontends.
func (p pattern) fixed(w *world) netip.AddrPort { return p.frontend(w).Backends[0].AddrPort() }

// changed returns the world's frontends with another first backend in frontend number at, as a new
// desired state.
func (w *world) changed(at, n int) []datapath.Frontend {
	out := slices.Clone(w.frontends)
	out[at].Backends = slices.Clone(out[at].Backends)
	out[at].Backends[0].Port = uint16(podPort + 1 + n%1000)
	return out
}
