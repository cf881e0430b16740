package faults

import (
	"errors"
	"fmt"
	"net/netip"
	"os"
	"path/filepath"
	"testing"
	"time"

	"strait.io/strait/internal/testutil"
)

// Somebody detaches a hook. The daemon notices at its next regular check, says so, and attaches it
// again.
func TestDetachedHook(t *testing.T) {
	m := newMachine(t)
	m.echo(t, pods{ready: a})
	life := m.start(t)
	pod := m.newPod(t, podA)
	vip := m.leadsTo(t, []netip.AddrPort{podA})
	served := func() error {
		s := socket{pod: pod}
		if err := pod.rpc.Call("Sockets.Open", vip, &s.fd); err != nil {
			return err
		}
		defer func() { must(t, pod.rpc.Call("Sockets.Close", s.fd, nil)) }()
		if got := s.ask(); got != podA.String() {
			return fmt.Errorf("the Service answers %q, want %s", got, podA)
		}
		return nil
	}
	must(t, served())
	// The pin is all that keeps the program attached; the kernel detaches it soon after.
	must(t, os.Remove(filepath.Join(m.pins(), "links", "connect4")))
	testutil.Eventually(t, patience, func() error {
		if served() == nil {
			return errors.New("the Service still answers")
		}
		return nil
	})
	testutil.Eventually(t, 2*time.Minute, served)
	life.says(t, "hooks were detached", "connect4")
}
