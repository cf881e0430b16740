package sockdestroy

import (
	"errors"
	"log/slog"

	"github.com/cilium/ebpf"
	"golang.org/x/sys/unix"
)

// method is a way to destroy sockets. It is used by one goroutine at a time.
type method interface {
	// begin takes what to look for, at most maxTargets.
	begin([]Target) error
	// here destroys what it finds in the network namespace of the calling thread, and returns how many
	// targets have no verdict yet.
	here() (left int, err error)
	// end returns the outcome by cookie of the targets that have been seen. Called after each begin.
	end() (map[uint64]outcome, error)
	close() error
}

// outcome is what has become of a target; err is why it could not be destroyed.
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

// choose takes the socket iterator, which compares and destroys under the socket's lock, and where that
// cannot be loaded sock_diag.
func choose(log *slog.Logger) method {
	it, err := newIterator()
	switch {
	case err == nil:
		return it
	case errors.Is(err, ebpf.ErrNotSupported):
		log.Info("this kernel has no BPF iterator that destroys sockets: using sock_diag", "cause", err)
	default:
		log.Warn("cannot load the BPF iterator that destroys sockets: using sock_diag", "cause", err)
	}
	return newDiag()
}

// membarrierGlobal is MEMBARRIER_CMD_GLOBAL of linux/membarrier.h.
const membarrierGlobal = 1

// awaitHooks returns when every connect hook that may still have seen the frontends of before has ended,
// and with that has written its record. Where the kernel does not wait (nohz_full, or one CPU) a record
// that is written in the microseconds after is found by the next call.
func awaitHooks() {
	_, _, _ = unix.Syscall(unix.SYS_MEMBARRIER, membarrierGlobal, 0, 0)
}
