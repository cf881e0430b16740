package socklb

import (
	"net/netip"
	"testing"

	"golang.org/x/sys/unix"

	"strait.io/strait/datapath"
	"strait.io/strait/internal/l4"
)

// reversal is a backend behind a frontend, TCP or UDP, for the tests of what its clients are shown.
type reversal struct {
	l        *LB
	f        family
	kind     int
	pod, vip netip.AddrPort
	front    datapath.Frontend
}

// TestReverseNeverLies: who dialled the frontend sees the frontend, and who dialled the backend sees the
// backend, whatever happens to either meanwhile.
func TestReverseNeverLies(t *testing.T) {
	if !inside(t) {
		return
	}
	l := opened(t, config(t))
	for name, test := range map[string]func(*testing.T, reversal){
		"direct to the pod":                       testDirectToPod,
		"frontend added to a live connection":     testFrontendAddedLater,
		"backend removed while a flow lives":      testBackendRemoved,
		"disconnected and connected elsewhere":    testConnectedElsewhere,
		"datagrams of the backend's bound socket": testBackendSpeaksFirst,
	} {
		for _, f := range families {
			for kind, proto := range map[int]l4.Proto{unix.SOCK_STREAM: l4.TCP, unix.SOCK_DGRAM: l4.UDP} {
				pod := echo(t, proto, netip.AddrPortFrom(f.pod, 0))
				vip := netip.AddrPortFrom(f.vip, 80)
				r := reversal{l, f, kind, pod, vip, datapath.Frontend{Addr: l4.New(f.vip, 80, proto), Backends: one(pod)}}
				t.Run(name+"/"+f.name+"/"+proto.String(), func(t *testing.T) {
					reconcile(t, l, r.front)
					test(t, r)
				})
			}
		}
	}
}

// dialled is a socket that is connected, and what it must be shown.
func (r reversal) dialled(t *testing.T, to netip.AddrPort) conversation {
	t.Helper()
	c := newClient(t, r.f, r.kind)
	t.Cleanup(c.close)
	if err := c.connect(to); err != nil {
		t.Fatal(err)
	}
	return conversation{c: c, vip: to, connected: true, stream: r.kind == unix.SOCK_STREAM}
}

func testDirectToPod(t *testing.T, r reversal) {
	r.dialled(t, r.vip).goesOn(t, "another that dialled the frontend")
	r.dialled(t, r.pod).goesOn(t, "direct")
	if r.kind == unix.SOCK_DGRAM {
		c := newClient(t, r.f, r.kind)
		defer c.close()
		conversation{c: c, vip: r.pod}.goesOn(t, "direct, unconnected")
	}
}

func testFrontendAddedLater(t *testing.T, r reversal) {
	reconcile(t, r.l)
	direct := r.dialled(t, r.pod)
	direct.goesOn(t, "before")
	reconcile(t, r.l, r.front)
	direct.goesOn(t, "frontend added")
	r.dialled(t, r.vip).goesOn(t, "frontend in use")
	direct.goesOn(t, "frontend in use by others")
}

func testBackendRemoved(t *testing.T, r reversal) {
	through, direct := r.dialled(t, r.vip), r.dialled(t, r.pod)
	for _, want := range [][]datapath.Frontend{{{Addr: r.front.Addr}}, nil, {r.front}} {
		reconcile(t, r.l, want...)
		through.goesOn(t, "its backend left")
		direct.goesOn(t, "direct")
	}
}

func testConnectedElsewhere(t *testing.T, r reversal) {
	elsewhere := echo(t, r.front.Addr.Proto, netip.AddrPortFrom(r.f.pod, 0))
	v := r.dialled(t, r.vip)
	for _, to := range []netip.AddrPort{elsewhere, r.vip, elsewhere} {
		v.goesOn(t, "connected")
		if err := disconnect(v.c.fd); err != nil {
			t.Fatal(err)
		}
		if err := v.c.connect(to); err != nil {
			t.Fatal(err)
		}
		v.vip = to
	}
	v.goesOn(t, "connected elsewhere")
}

// A peer-to-peer protocol: the pod speaks from the socket on which it also serves, to one that never
// dialled the frontend.
func testBackendSpeaksFirst(t *testing.T, r reversal) {
	if r.kind != unix.SOCK_DGRAM {
		return // a stream begins with the client's connect: there is no such case
	}
	podFD := newClient(t, r.f, unix.SOCK_DGRAM)
	peer := newClient(t, r.f, unix.SOCK_DGRAM)
	defer podFD.close()
	defer peer.close()
	for _, c := range []*client{podFD, peer} {
		if err := unix.Bind(c.fd, r.f.sockaddr(netip.AddrPortFrom(r.f.pod, 0))); err != nil {
			t.Fatal(err)
		}
	}
	at := func(c *client) netip.AddrPort {
		sa, err := unix.Getsockname(c.fd)
		if err != nil {
			t.Fatal(err)
		}
		return addrPortOf(sa)
	}
	reconcile(t, r.l, datapath.Frontend{Addr: r.front.Addr, Backends: one(at(podFD))})
	other := r.dialled(t, r.vip) // another socket has a record with that backend
	if err := podFD.send(at(peer)); err != nil {
		t.Fatal(err)
	}
	if _, from, err := peer.receive(); err != nil || from != at(podFD) {
		t.Errorf("the pod's datagram is shown from %v, %v; want %v", from, err, at(podFD))
	}
	if err := other.c.write(); err != nil {
		t.Fatal(err)
	}
	_, asker, err := podFD.receive()
	if err != nil {
		t.Fatal(err)
	}
	if err := podFD.send(asker); err != nil {
		t.Fatal(err)
	}
	if _, from, err := other.c.receive(); err != nil || from != r.vip {
		t.Errorf("the answer to who dialled the frontend is shown from %v, %v; want %v", from, err, r.vip)
	}
}
