package socklb

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"time"

	"strait.io/strait/datapath"
	"strait.io/strait/internal/l4"
)

// ErrOutside is returned by SelfTest to a process whose sockets the hooks do not see. A socket
// belongs to the cgroup that its process was in when it was made, so only a process inside the
// cgroup can run the test.
var ErrOutside = errors.New("this process is not in the cgroup, so the self-test cannot run")

// selfTestAddr is dialled by SelfTest. It is a loopback address: if the hooks are not hit, nothing
// leaves the machine.
var selfTestAddr = netip.MustParseAddr("127.83.84.82")

// ErrNoRoom is returned by SelfTest if the maps are full, so that there is no room for its frontend.
var ErrNoRoom = errors.New("the maps are full, so the self-test cannot run")

const selfTestTimeout = 2 * time.Second

// SelfTest connects to a listener of its own through a temporary frontend, which proves that the
// hooks are hit. It returns ErrOutside when called from outside the cgroup, and ErrNoRoom if its frontend does
// not fit beside those that an earlier daemon left.
func (l *LB) SelfTest(ctx context.Context) error {
	inside, err := l.cgroup.HoldsSelf()
	if err != nil {
		return fmt.Errorf("self-test: %w", err)
	}
	if !inside {
		return fmt.Errorf("cgroup %s: %w", l.cgroup.Path, ErrOutside)
	}
	ctx, cancel := context.WithTimeout(ctx, selfTestTimeout)
	defer cancel()
	var lc net.ListenConfig
	listener, err := lc.Listen(ctx, "tcp4", "127.0.0.1:0")
	if err != nil {
		return fmt.Errorf("self-test: %w; is the loopback device up?", err)
	}
	defer listener.Close()
	backend := listener.Addr().(*net.TCPAddr).AddrPort()
	frontend := l4.New(selfTestAddr, backend.Port(), l4.TCP)

	// The lock keeps a Reconcile from pruning the frontend in the meantime.
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.table == nil {
		return errClosed
	}
	err = l.table.put(datapath.Frontend{Addr: frontend, Backends: []datapath.Backend{{IP: backend.Addr(), Port: backend.Port(), Weight: 1}}})
	if errors.Is(err, errFull) {
		return ErrNoRoom
	}
	if err != nil {
		return fmt.Errorf("self-test: add frontend %s: %w", frontend, err)
	}
	err = errors.Join(dial(ctx, l.cgroup.Path, frontend), l.table.remove(frontend))
	l.table.kernel.keepMarks(l.table.addresses())
	return err
}

func dial(ctx context.Context, cgroup string, frontend l4.Addr) error {
	want := netip.AddrPortFrom(frontend.IP, frontend.Port).String()
	var d net.Dialer
	conn, err := d.DialContext(ctx, "tcp4", want)
	if err != nil {
		return fmt.Errorf("self-test: hooks on cgroup %s are not hit: connect through %s: %w; "+
			"does a program that is attached below refuse the connection, or is this a private cgroup namespace?", cgroup, frontend, err)
	}
	defer conn.Close()
	if peer := conn.RemoteAddr().String(); peer != want {
		return fmt.Errorf("self-test: getpeername shows %s instead of %s: its hook on cgroup %s is not hit", peer, want, cgroup)
	}
	return nil
}
