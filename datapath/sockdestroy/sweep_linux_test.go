package sockdestroy

import (
	"errors"
	"net"
	"slices"
	"syscall"
	"testing"

	"golang.org/x/sys/unix"

	"strait.io/strait/internal/testutil"
)

// holder is a Holder with the given owners.
type holder struct {
	owners, forgot []uint64
	looks          int
	after          func(looks int) // called after each look
}

func (h *holder) Owners() ([]uint64, error) {
	h.looks++
	owners := slices.Clone(h.owners)
	if h.after != nil {
		h.after(h.looks)
	}
	return owners, nil
}

func (h *holder) Forget(cookies []uint64) error { h.forgot = cookies; return nil }

// cookieOf returns the cookie of a connection.
func cookieOf(t testing.TB, c syscall.Conn) (cookie uint64) {
	t.Helper()
	raw, err := c.SyscallConn()
	if err != nil {
		t.Fatal(err)
	}
	err = errors.Join(raw.Control(func(fd uintptr) {
		cookie, err = unix.GetsockoptUint64(int(fd), unix.SOL_SOCKET, unix.SO_COOKIE)
	}), err)
	if err != nil || cookie == 0 {
		t.Fatalf("cookie %d, %v", cookie, err)
	}
	return cookie
}

// TestSweep: what belongs to no socket of the machine is forgotten, and nothing that belongs to one in this or another
// namespace, or that got its record between the two looks.
func TestSweep(t *testing.T) {
	if !inside(t) {
		return
	}
	if err := haveDiag(); err != nil {
		testutil.Missing(t, "this kernel has no sock_diag: "+err.Error())
	}
	var alive []uint64
	open := func() error {
		for _, at := range []string{"127.0.0.1:0", "[::1]:0"} {
			c, err := net.ListenPacket("udp", at)
			if err != nil {
				return err
			}
			t.Cleanup(func() { c.Close() })
			alive = append(alive, cookieOf(t, c.(*net.UDPConn)))
			d, err := net.Dial("udp", c.LocalAddr().String())
			if err != nil {
				return err
			}
			t.Cleanup(func() { d.Close() })
			alive = append(alive, cookieOf(t, d.(*net.UDPConn)))
		}
		l, err := net.Listen("tcp", "127.0.0.1:0")
		if err != nil {
			return err
		}
		t.Cleanup(func() { l.Close() })
		d, err := net.Dial("tcp", l.Addr().String())
		if err != nil {
			return err
		}
		t.Cleanup(func() { d.Close() })
		alive = append(alive, cookieOf(t, d.(*net.TCPConn)))
		return nil
	}
	if err := open(); err != nil {
		t.Fatal(err)
	}
	mountNamespace(t, open)
	closed, err := net.ListenPacket("udp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	dead := cookieOf(t, closed.(*net.UDPConn))
	closed.Close()
	const late = 1 << 45
	h := &holder{owners: append(slices.Clone(alive), dead)}
	h.after = func(looks int) { h.owners = append(h.owners, late+uint64(looks)) }
	freed, err := Sweep(t.Context(), "/proc", h)
	if err != nil || freed != 1 || !slices.Equal(h.forgot, []uint64{dead}) {
		t.Errorf("freed %d, forgot %v, %v; want %d alone", freed, h.forgot, err, dead)
	}
	all := &holder{owners: alive}
	if freed, err := Sweep(t.Context(), "/proc", all); err != nil || freed != 0 || all.forgot != nil || all.looks != 1 {
		t.Errorf("freed %d, forgot %v after %d looks, %v; want nothing after one", freed, all.forgot, all.looks, err)
	}
	unsure := &holder{owners: []uint64{dead}}
	if _, err := Sweep(t.Context(), t.TempDir()+"/none", unsure); err == nil || unsure.forgot != nil {
		t.Errorf("a machine that cannot be searched: forgot %v, %v", unsure.forgot, err)
	}
}
