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

// undos are the functions to run at an interrupt, in reverse order of registration.
var undos struct {
	mu    sync.Mutex
	watch sync.Once
	list  []*func()
	begun bool // they run, or have run
}

// AtInterrupt registers undo to run if the test binary is interrupted (Ctrl-C, SIGTERM), when no
// test's Cleanup runs. The binary exits with code 130 after all of them have run. Forget
// unregisters undo. If the binary was interrupted already, AtInterrupt runs undo and does not return:
// a test that starts meanwhile, beside others, would leave behind what it makes.
func AtInterrupt(undo func()) (forget func()) {
	undos.watch.Do(func() {
		signals := make(chan os.Signal, 1)
		signal.Notify(signals, os.Interrupt, syscall.SIGTERM)
		go func() {
			s := <-signals
			fmt.Fprintf(os.Stderr, "%s: this test binary removes what it created\n", s)
			interrupted()
			os.Exit(130)
		}()
	})
	if !register(&undo) {
		undo()
		select {}
	}
	return func() {
		undos.mu.Lock()
		defer undos.mu.Unlock()
		undos.list = slices.DeleteFunc(undos.list, func(f *func()) bool { return f == &undo })
	}
}

// register reports whether undo will run at an interrupt, because there was none yet.
func register(undo *func()) bool {
	undos.mu.Lock()
	defer undos.mu.Unlock()
	if !undos.begun {
		undos.list = append(undos.list, undo)
	}
	return !undos.begun
}

func interrupted() {
	undos.mu.Lock()
	undos.begun = true
	list := slices.Clone(undos.list)
	undos.mu.Unlock()
	for _, undo := range slices.Backward(list) {
		(*undo)()
	}
}

// cleanup is t.Cleanup for what must also be undone at an interrupt.
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
