package stream

import (
	"context"
	"errors"
	"net/netip"
	"testing"
	"time"
)

func at(a, b byte) netip.Addr { return netip.AddrFrom4([4]byte{10, 0, a, b}) }

// TestDesk: a full desk sends strangers away before known peers, and silent ones before those that asked,
// the oldest of the source that has most; what is being answered stays.
func TestDesk(t *testing.T) {
	d := &desk{}
	known, _ := d.enter(nil, at(9, 1), true)
	greedy, _ := d.enter(nil, at(9, 2), false)
	if err := d.ask(t.Context(), greedy, Key{1}); err != nil {
		t.Fatal(err)
	}
	var silent []*asker
	for range maxAskingPerSource {
		in, out := d.enter(nil, at(9, 2), false)
		if silent = append(silent, in); out != nil && out != silent[0] {
			t.Fatal("it is not the oldest silent one of its source that has to go")
		}
	}
	if !errors.Is(d.ask(t.Context(), silent[0], Key{2}), errBusy) {
		t.Error("one that had to go is answered")
	}
	for i := 0; len(d.here) < maxAsking; i++ {
		if _, out := d.enter(nil, at(1, byte(i)), false); out != nil {
			t.Fatal("one had to go though there is room")
		}
	}
	if _, out := d.enter(nil, at(2, 1), false); out != silent[1] {
		t.Error("it is not the oldest silent one of the largest source that has to go")
	}
	for i := range 2 * maxAsking {
		if _, out := d.enter(nil, at(3, byte(i)), false); out == known || out == greedy || len(d.here) > maxAsking {
			t.Fatalf("%d are here", len(d.here))
		}
	}
}

// TestDeskTurns: one of a source and one of a key is answered at once, strangers leave places for known
// peers, and what leaves gives its place to the next.
func TestDeskTurns(t *testing.T) {
	d := &desk{}
	ask := func(a netip.Addr, known bool, key byte) (*asker, bool) {
		in, _ := d.enter(nil, a, known)
		soon, cancel := context.WithTimeout(t.Context(), 200*time.Millisecond)
		defer cancel()
		return in, d.ask(soon, in, Key{key}) == nil
	}
	first, ok := ask(at(0, 1), false, 1)
	second, twice := ask(at(0, 1), false, 2)
	if _, same := ask(at(0, 2), false, 1); !ok || twice || same {
		t.Errorf("the first is %v; the second of its source %v, of its key %v", ok, twice, same)
	}
	if d.leave(first); !second.served {
		t.Error("the next of the source gets no turn")
	}
	for i := byte(10); d.strange < maxStrangers; i++ {
		ask(at(1, i), false, i)
	}
	if _, ok := ask(at(2, 1), false, 200); ok {
		t.Error("strangers take all places")
	}
	if _, ok := ask(at(0, 1), true, 201); !ok {
		t.Error("a known peer waits for strangers")
	}
}
