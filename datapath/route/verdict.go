package route

import (
	"errors"

	"golang.org/x/sys/unix"

	"strait.io/strait/internal/problem"
)

// verdicts collects what failed in one Reconcile: Problems of single objects, and errors of the
// Router itself.
type verdicts struct {
	problems []problem.Problem
	errs     []error
}

// failed records an error of the Router itself, if err is not nil.
func (v *verdicts) failed(err error) {
	if err != nil {
		v.errs = append(v.errs, err)
	}
}

// on records the result for one object.
func (v *verdicts) on(object problem.Ref, err error, try string) {
	switch {
	case err == nil:
	case refused(err):
		v.problems = append(v.problems, object.Problem(problem.Problem{Code: problem.RouteRefused, Message: err.Error(), Try: try}))
	default:
		v.errs = append(v.errs, err)
	}
}

// refused reports whether the kernel answered and refused this object, so that the next one may
// succeed. Broken netlink, missing permission, lack of memory, and a device that is gone or down
// are not about the object.
func refused(err error) bool {
	for _, n := range []unix.Errno{unix.EPERM, unix.EACCES, unix.ENOMEM, unix.ENOBUFS, unix.ENODEV, unix.ENXIO, unix.ENETDOWN} {
		if errors.Is(err, n) {
			return false
		}
	}
	var answer unix.Errno
	return errors.As(err, &answer)
}
