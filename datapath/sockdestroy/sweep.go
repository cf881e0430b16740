package sockdestroy

import (
	"context"
	"slices"
	"time"
)

// Holder has records of sockets that can outlive their sockets.
type Holder interface {
	// Owners returns the cookies of the sockets that have such records.
	Owners() ([]uint64, error)
	// Forget frees the records of sockets that are gone.
	Forget(cookies []uint64) error
}

// sweepPause is the pause between the two looks of a sweep. The record of a socket is written
// shortly before the kernel lists the socket, so one look is not enough.
const sweepPause = time.Second

// Sweep frees the records whose sockets were not alive at two looks, and returns how many sockets
// had any. If part of the machine cannot be searched, it frees nothing; see Alive.
func Sweep(ctx context.Context, procfs string, h Holder) (freed int, err error) {
	suspects, err := gone(ctx, procfs, h, func(uint64) bool { return true })
	if err != nil || len(suspects) == 0 {
		return 0, err
	}
	if err := sleep(ctx, sweepPause); err != nil {
		return 0, err
	}
	slices.Sort(suspects)
	dead, err := gone(ctx, procfs, h, func(c uint64) bool {
		_, is := slices.BinarySearch(suspects, c)
		return is
	})
	if err != nil || len(dead) == 0 {
		return 0, err
	}
	return len(dead), h.Forget(dead)
}

// gone returns the owners among the suspects that are not alive.
func gone(ctx context.Context, procfs string, h Holder, suspect func(uint64) bool) ([]uint64, error) {
	owners, err := h.Owners()
	if err != nil {
		return nil, err
	}
	owners = slices.DeleteFunc(owners, func(c uint64) bool { return !suspect(c) })
	if len(owners) == 0 {
		return nil, nil
	}
	alive, err := Alive(ctx, procfs, owners)
	if err != nil {
		return nil, err
	}
	return slices.DeleteFunc(owners, func(c uint64) bool { return alive[c] }), nil
}
