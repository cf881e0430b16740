package sockdestroy

import (
	"context"
	"errors"
	"fmt"

	"golang.org/x/sys/unix"

	"strait.io/strait/internal/l4"
)

// anyState are all states of a socket.
const anyState = 1<<32 - 1

// Alive returns which of the cookies belong to a TCP or UDP socket in any network namespace of the
// machine; procfs is where proc(5) is mounted. An error means that some namespace could not be
// searched, so a cookie that is not in the result can still be alive.
//
// Two kinds of live sockets are not found: those of a network namespace that only file descriptors
// hold, and TCP sockets that have no connection (any more). The second have no peer to compare.
func Alive(ctx context.Context, procfs string, cookies []uint64) (map[uint64]bool, error) {
	alive := make(map[uint64]bool, len(cookies))
	for _, c := range cookies {
		alive[c] = false
	}
	left := len(alive)
	spaces, err := namespaces(procfs)
	if err != nil {
		return nil, fmt.Errorf("find live sockets: %w", err)
	}
	_, err = visit(ctx, procfs, spaces, func() (int, error) {
		err := eachHere(func(cookie uint64) {
			if found, asked := alive[cookie]; asked && !found {
				alive[cookie] = true
				left--
			}
		})
		return left, err
	})
	if err != nil {
		return nil, fmt.Errorf("find live sockets: %w", err)
	}
	return alive, nil
}

// eachHere calls each with the cookie of every socket in the namespace of the calling thread.
func eachHere(each func(cookie uint64)) error {
	c, err := dialDiag()
	if err != nil {
		return err
	}
	defer c.close()
	var errs []error
	for _, proto := range []l4.Proto{l4.UDP, l4.TCP} {
		for _, family := range []uint8{unix.AF_INET, unix.AF_INET6} {
			err := c.list(diagRequest{family: family, proto: proto, states: anyState}, func(s diagSocket) { each(s.id.cookie()) })
			if err != nil {
				errs = append(errs, fmt.Errorf("%s sockets: %w", proto, explainList(err)))
			}
		}
	}
	return errors.Join(errs...)
}
