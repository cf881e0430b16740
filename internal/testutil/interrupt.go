package testutil

import (
	"fmt"
	"os"
	"os/signal"
	"slices"
	"sync"
	"syscall"
	"testing"
)

// undos are what an interrupt runs, the last registered first.
var undos struct {
	mu    sync.Mutex
	watch sync.Once
	list  []*func()
}

// AtInterrupt has undo run if the test binary is interrupted (Ctrl-C, SIGTERM): no test's Cleanup runs then. The binary
// ends with exit code 130 after all of them have run. forget takes undo back.
func AtInterrupt(undo func()) (forget func()) {
	undos.watch.Do(func() {
		signals := make(chan os.Signal, 1)
		signal.Notify(signals, os.Interrupt, syscall.SIGTERM)
		go func() {
			s := <-signals
			fmt.Fprintf(os.Stderr, "%s: this test binary takes away what it made\n", s)
			interrupted()
			os.Exit(130)
		}()
	})
	undos.mu.Lock()
	defer undos.mu.Unlock()
	undos.list = append(undos.list, &undo)
	return func() {
		undos.mu.Lock()
		defer undos.mu.Unlock()
		undos.list = slices.DeleteFunc(undos.list, func(f *func()) bool { return f == &undo })
	}
}

func interrupted() {
	undos.mu.Lock()
	list := slices.Clone(undos.list)
	undos.mu.Unlock()
	for _, undo := range slices.Backward(list) {
		(*undo)()
	}
}

// cleanup is t.Cleanup of what is to be undone at an interrupt as well.
func cleanup(t testing.TB, undo func() error) {
	t.Helper()
	forget := AtInterrupt(func() {
		if err := undo(); err != nil {
			fmt.Fprintln(os.Stderr, err)
		}
	})
	t.Cleanup(func() {
		forget()
		if err := undo(); err != nil {
			t.Error(err)
		}
	})
}
