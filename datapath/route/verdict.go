package route

import (
	"errors"

	"golang.org/x/sys/unix"

	"strait.io/strait/internal/problem"
)

// verdicts collects what went wrong in one Reconcile: Problems of single objects, and errors of the
// whole.
type verdicts struct {
	problems []problem.Problem
	errs     []error
}

// failed notes an error of the whole, if there is one.
func (v *verdicts) failed(err error) {
	if err != nil {
		v.errs = append(v.errs, err)
	}
}

// on notes what became of one object.
func (v *verdicts) on(object string, err error, try string) {
	switch {
	case err == nil:
	case refused(err):
		v.problems = append(v.problems, problem.Problem{Code: problem.RouteRefused, Object: object, Message: err.Error(), Try: try})
	default:
		v.errs = append(v.errs, err)
	}
}

// refused reports that the kernel answered, and that its answer is about the object: the next
// object may fare better. Broken netlink, a missing right, and a device that is gone or down are no
// such answers.
func refused(err error) bool {
	for _, n := range []unix.Errno{unix.EPERM, unix.EACCES, unix.ENOMEM, unix.ENOBUFS, unix.ENODEV, unix.ENXIO, unix.ENETDOWN} {
		if errors.Is(err, n) {
			return false
		}
	}
	var answer unix.Errno
	return errors.As(err, &answer)
}
