package sockdestroy

import (
	"errors"
	"fmt"

	"golang.org/x/sys/unix"

	"strait.io/strait/internal/l4"
)

// diag is the method for kernels without the iterator. By sock_diag(7) it lists the connected
// sockets of a namespace, and destroys a socket by its addresses and its cookie. The kernel
// compares both, so it does not find a socket that has connected elsewhere since it was listed.
//
// It cannot destroy one of two sockets that have exactly the same addresses (SO_REUSEPORT).
type diag struct {
	targets  map[uint64]Target
	outcomes map[uint64]outcome
}

func newDiag() *diag { return &diag{} }

func (d *diag) close() error { return nil }

func (d *diag) begin(targets []Target) error {
	d.targets, d.outcomes = make(map[uint64]Target, len(targets)), map[uint64]outcome{}
	for _, t := range targets {
		d.targets[t.Cookie] = t
	}
	return nil
}

func (d *diag) end() (map[uint64]outcome, error) { return d.outcomes, nil }

// states are the states in which a socket has a peer and can be destroyed, as in
// ../../bpf/sockdestroy.bpf.c.
var states = map[l4.Proto]uint32{
	l4.UDP: 1 << 1,
	l4.TCP: 1<<1 | 1<<2 | 1<<3 | 1<<4 | 1<<5 | 1<<8 | 1<<9 | 1<<11,
}

func (d *diag) here() (left int, err error) {
	c, err := dialDiag()
	if err != nil {
		return 0, err
	}
	defer c.close()
	for _, proto := range d.protocols() {
		for _, family := range []uint8{unix.AF_INET, unix.AF_INET6} {
			if err := d.family(c, proto, family); err != nil {
				return 0, fmt.Errorf("%s sockets: %w", proto, explainList(err))
			}
		}
	}
	return len(d.targets) - len(d.outcomes), nil
}

// protocols returns the protocols of the targets without a verdict.
func (d *diag) protocols() []l4.Proto {
	var open []Target
	for cookie, t := range d.targets {
		if _, ok := d.outcomes[cookie]; !ok {
			open = append(open, t)
		}
	}
	return protocols(open)
}

// family lists first and destroys afterwards, so that the list does not change while the kernel
// walks it.
func (d *diag) family(c *diagConn, proto l4.Proto, family uint8) error {
	var found []diagSocket
	err := c.list(diagRequest{family: family, proto: proto, states: states[proto]}, func(s diagSocket) {
		t, ok := d.targets[s.id.cookie()]
		switch {
		case !ok || t.Proto != proto:
		case s.peer() == t.Peer:
			found = append(found, s)
		default:
			d.outcomes[t.Cookie] = outcome{verdict: elsewhere}
		}
	})
	if err != nil {
		return err
	}
	for _, s := range found {
		err := c.destroy(diagRequest{family: s.family, proto: proto, states: states[proto], id: s.id})
		cookie := s.id.cookie()
		switch {
		case err == nil:
			d.outcomes[cookie] = outcome{verdict: destroyed}
		case errors.Is(err, unix.ENOENT) || errors.Is(err, unix.ESTALE):
			// It was closed or connected elsewhere in the meantime; its record shows which.
		default:
			d.outcomes[cookie] = outcome{refused, fmt.Errorf("destroy socket %d: %w", cookie, explainDiag(err))}
		}
	}
	return nil
}

// explainDiag adds what to do if the kernel does not destroy sockets.
func explainDiag(err error) error {
	switch {
	case errors.Is(err, unix.EOPNOTSUPP):
		return fmt.Errorf("%w; use a kernel with CONFIG_INET_DIAG_DESTROY, or Linux 6.5 or newer with BTF", err)
	case errors.Is(err, unix.EPERM):
		return fmt.Errorf("%w; run as root, or with the capability NET_ADMIN", err)
	}
	return err
}

// explainList adds what to do if the kernel does not list sockets.
func explainList(err error) error {
	if errors.Is(err, unix.ENOENT) {
		return fmt.Errorf("%w; load the kernel modules inet_diag, tcp_diag and udp_diag", err)
	}
	return err
}
