package probe

import (
	"context"
	"fmt"
	"math/rand/v2"
	"net"
	"net/netip"
	"os"
	"syscall"
	"testing"

	"strait.io/strait/clustermesh/gossip/observe"
)

// addr is a loopback address that nothing else uses.
func addr() netip.AddrPort {
	return netip.AddrPortFrom(netip.AddrFrom4([4]byte{127, byte(1 + rand.IntN(250)), byte(rand.IntN(250)), byte(1 + rand.IntN(250))}), 27946)
}

func TestJudge(t *testing.T) {
	dial := func(errno error) error { return &net.OpError{Op: "dial", Err: os.NewSyscallError("connect", errno)} }
	cases := []struct {
		err  error
		want observe.Verdict
	}{
		{nil, observe.Answered},
		{dial(syscall.ECONNREFUSED), observe.Answered},
		{dial(syscall.ECONNRESET), observe.Answered},
		{dial(syscall.ETIMEDOUT), observe.Silent},
		{dial(syscall.EHOSTUNREACH), observe.Silent},
		{dial(syscall.ENETUNREACH), observe.Silent},
		{fmt.Errorf("dial: %w", context.DeadlineExceeded), observe.Silent},
		{dial(os.ErrDeadlineExceeded), observe.Silent},
		{dial(syscall.EMFILE), observe.Blind},
		{dial(syscall.EPERM), observe.Blind},
		{dial(syscall.ENETDOWN), observe.Blind},
		{dial(syscall.ENOKEY), observe.Blind},
		{context.Canceled, observe.Blind},
	}
	for _, c := range cases {
		if got := judge(c.err); got != c.want {
			t.Errorf("judge(%v) = %d, want %d", c.err, got, c.want)
		}
	}
}

func TestTCPProbe(t *testing.T) {
	a, b := addr(), addr()
	l, err := net.Listen("tcp", a.String())
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	if got := TCP(t.Context(), []netip.AddrPort{a}); got != observe.Answered {
		t.Errorf("a listener: %d", got)
	}
	if got := TCP(t.Context(), []netip.AddrPort{b}); got != observe.Answered {
		t.Errorf("a machine that refuses: %d", got)
	}
	if got := TCP(t.Context(), nil); got != observe.Blind {
		t.Errorf("no address: %d", got)
	}
}
