package fleet

import (
	"context"
	"errors"
	"slices"
	"testing"
)

// TestPinTogether: on the way to pins, no daemon is asked to refuse what is not signed while anything is
// not, and none that pins already hears a newcomer that it does not know.
func TestPinTogether(t *testing.T) {
	var known, heard, signing, met, signed, pinned, all bool
	demand := func(what string, is ...bool) error {
		if slices.Contains(is, false) {
			t.Errorf("%s: too early", what)
		}
		return nil
	}
	steps := pinSteps{
		write: func() error { known = true; return nil },
		join:  func() error { heard = true; return demand("join", known) },
		turnOn: func(value string) error {
			switch value {
			case "sign":
				signing = true
				return demand(value, known)
			case "pin":
				pinned = true
				return demand(value, signing, met, signed)
			}
			return errors.New("no such value: " + value)
		},
		meet: func() error { met = true; return demand("meet", heard) },
		// Some daemon takes its time: its records are signed only when that was waited for.
		signed:   func() error { signed = signing; return demand("signed", met) },
		followed: func() error { all = pinned; return nil },
	}
	if err := pinTogether(steps); err != nil || !all {
		t.Errorf("error %v; every daemon has the pins: %v", err, all)
	}
	steps.signed = func() error { return context.DeadlineExceeded }
	if pinned = false; !errors.Is(pinTogether(steps), context.DeadlineExceeded) || pinned {
		t.Errorf("not all was signed in time, and pins are in force: %v", pinned)
	}
}
