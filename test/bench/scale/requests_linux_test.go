package scale

import (
	"encoding/binary"
	"net"
	"os"
	"testing"

	"golang.org/x/sys/unix"

	"strait.io/strait/internal/testutil"
)

// What this process asks is counted, each time and in either form, and what goes to other sockets is not.
func TestRequestsAreCounted(t *testing.T) {
	testutil.NeedRoot(t)
	r, err := countRequests(os.Getpid())
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	fd, err := unix.Socket(unix.AF_NETLINK, unix.SOCK_RAW, unix.NETLINK_ROUTE)
	if err != nil {
		t.Fatal(err)
	}
	defer unix.Close(fd)
	udp, err := net.ListenUDP("udp4", &net.UDPAddr{IP: net.IPv4(127, 0, 0, 1)})
	if err != nil {
		t.Fatal(err)
	}
	defer udp.Close()
	// The header of a message that asks nothing.
	noop := binary.NativeEndian.AppendUint16(binary.NativeEndian.AppendUint32(nil, unix.NLMSG_HDRLEN), unix.NLMSG_NOOP)
	noop = append(noop, make([]byte, unix.NLMSG_HDRLEN-len(noop))...)
	kernel := &unix.SockaddrNetlink{Family: unix.AF_NETLINK}
	count := func(f func() error) uint64 {
		t.Helper()
		before, err := r.total()
		if err != nil {
			t.Fatal(err)
		}
		if err := f(); err != nil {
			t.Fatal(err)
		}
		after, err := r.total()
		if err != nil {
			t.Fatal(err)
		}
		return after - before
	}
	own := count(func() error { return nil }) // to read the counters takes bpf system calls
	for _, test := range []struct {
		what string
		want uint64
		do   func() error
	}{
		{"sendto a netlink socket", 1, func() error { return unix.Sendto(fd, noop, 0, kernel) }},
		{"sendmsg to a netlink socket", 1, func() error { return unix.Sendmsg(fd, noop, nil, kernel, 0) }},
		{"bpf", countKinds, func() error { _, err := r.total(); return err }},
		{"UDP", 0, func() error { _, err := udp.WriteTo([]byte("x"), udp.LocalAddr()); return err }},
	} {
		if n := count(test.do) - own; n != test.want {
			t.Errorf("%s counts as %d, want %d", test.what, n, test.want)
		}
	}
}
