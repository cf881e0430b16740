package sockdestroy

import (
	"errors"
	"log/slog"

	"github.com/cilium/ebpf"
	"golang.org/x/sys/unix"
)

// method is a way to destroy sockets. It is used by one goroutine at a time.
type method interface {
	// begin sets the targets to look for, at most maxTargets.
	begin([]Target) error
	// here destroys the targets that it finds in the network namespace of the calling thread, and
	// returns how many targets have no verdict yet.
	here() (left int, err error)
	// end returns the outcomes of the targets that have been seen, by cookie. It is called after
	// each begin.
	end() (map[uint64]outcome, error)
	close() error
}

// outcome is what happened to a target; err is why it could not be destroyed.
type outcome struct {
	verdict verdict
	err     error
}

type verdict = sockdestroyVerdict

const (
	destroyed = sockdestroyVerdictVERDICT_DESTROYED
	elsewhere = sockdestroyVerdictVERDICT_ELSEWHERE
	refused   = sockdestroyVerdictVERDICT_REFUSED
)

// choose returns the socket iterator, which compares and destroys under the socket's lock, or
// sock_diag if the iterator cannot be loaded.
func choose(log *slog.Logger) method {
	it, err := newIterator()
	switch {
	case err == nil:
		return it
	case errors.Is(err, ebpf.ErrNotSupported):
		log.Info("this kernel has no BPF iterator that destroys sockets; using sock_diag", "err", err)
	default:
		log.Warn("cannot load the BPF iterator that destroys sockets; using sock_diag", "err", err)
	}
	return newDiag()
}

// membarrierGlobal is MEMBARRIER_CMD_GLOBAL of linux/membarrier.h.
const membarrierGlobal = 1

// awaitHooks returns when every connect hook that may have used the previous frontends has ended,
// and so has written its record. Where the kernel does not wait (nohz_full, or a single CPU), the
// next call finds a record that is written in the microseconds after this one.
func awaitHooks() {
	_, _, _ = unix.Syscall(unix.SYS_MEMBARRIER, membarrierGlobal, 0, 0)
}
