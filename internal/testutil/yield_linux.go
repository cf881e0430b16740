package testutil

import (
	"errors"
	"fmt"
	"os"
	"strconv"

	"golang.org/x/sys/unix"
)

// Yield makes this process run only while no other wants a processor. Threads that it starts later do
// the same.
func Yield() error {
	const schedIdle = 5
	threads, err := os.ReadDir("/proc/self/task")
	if err != nil {
		return fmt.Errorf("list the threads of this process: %w", err)
	}
	for _, thread := range threads {
		id, err := strconv.Atoi(thread.Name())
		if err == nil {
			err = unix.SchedSetAttr(id, &unix.SchedAttr{Policy: schedIdle}, 0)
		}
		if err != nil && !errors.Is(err, unix.ESRCH) { // the thread has ended
			return fmt.Errorf("make thread %s yield: %w", thread.Name(), err)
		}
	}
	return nil
}
