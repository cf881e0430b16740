package statelog

import (
	"bytes"
	"errors"
	"maps"
	"slices"
	"testing"

	"pgregory.net/rapid"
)

// drawOps makes a sequence of changes of a few keys.
func drawOps(t *rapid.T, label string) []Op {
	return rapid.SliceOfN(rapid.Custom(func(t *rapid.T) Op {
		op := Op{Key: rapid.SampledFrom([]string{"", "a", "b", "c/d", "east/n1"}).Draw(t, "key")}
		if op.Remove = rapid.Bool().Draw(t, "remove"); !op.Remove {
			op.Value = rapid.SliceOfN(rapid.Byte(), 0, 6).Draw(t, "value")
		}
		return op
	}), 0, 5).Draw(t, label)
}

// apply is what a log means.
func apply(state map[string]string, ops []Op) map[string]string {
	state = maps.Clone(state)
	for _, op := range ops {
		delete(state, op.Key)
		if !op.Remove {
			state[op.Key] = string(op.Value)
		}
	}
	return state
}

// encoded returns a log, and where each of its entries ends.
func encoded(t rapid.TB, ops []Op) (b []byte, ends []int) {
	b = []byte(magic)
	for _, op := range ops {
		var err error
		if b, err = appendOp(b, op); err != nil {
			t.Fatal(err)
		}
		ends = append(ends, len(b))
	}
	return b, ends
}

// values returns what the bytes of a log mean by its index.
func values(t rapid.TB, x *index, b []byte) map[string]string {
	out := map[string]string{}
	for key, s := range x.spans {
		op, err := decodeEntry(b[s.at : s.at+s.size])
		if err != nil || op.Key != key || op.Remove {
			t.Fatalf("the entry of %q is %+v: %v", key, op, err)
		}
		out[key] = string(op.Value)
	}
	return out
}

// TestCutAnywhere: of a log that is cut at any byte, what was written completely counts, and the rest is
// counted as lost.
func TestCutAnywhere(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		ops := drawOps(t, "ops")
		whole, ends := encoded(t, ops)
		for size := len(magic); size <= len(whole); size++ {
			complete := 0
			for complete < len(ends) && ends[complete] <= size {
				complete++
			}
			good := len(magic)
			if complete > 0 {
				good = ends[complete-1]
			}
			x, err := scan(bytes.NewReader(whole[:size]), int64(size))
			d, damaged := errors.AsType[*Damage](err)
			if damaged != (size > good) || err != nil && !damaged {
				t.Fatalf("cut at %d of %d: %v", size, len(whole), err)
			}
			if damaged && (d.At != int64(good) || d.Lost != int64(size-good)) {
				t.Fatalf("cut at %d, with %d good bytes: %v", size, good, d)
			}
			if got, want := values(t, x, whole), apply(none(), ops[:complete]); !maps.Equal(got, want) {
				t.Fatalf("cut at %d: %v, want %v", size, got, want)
			}
			live := int64(len(magic))
			for _, s := range x.spans {
				live += s.size
			}
			if x.live != live || x.size != int64(good) {
				t.Fatalf("cut at %d: %d bytes of which %d count, want %d and %d", size, x.size, x.live, good, live)
			}
		}
	})
}

func none() map[string]string { return map[string]string{} }

// TestFlippedAnywhere: a byte that differs is found, and what is before its entry counts.
func TestFlippedAnywhere(t *testing.T) {
	ops := []Op{{Key: "a", Value: []byte("one")}, {Key: "b", Value: []byte("two")}, {Key: "a", Remove: true}}
	whole, ends := encoded(t, ops)
	for i := range whole {
		b := slices.Clone(whole)
		b[i] ^= 0x10
		x, err := scan(bytes.NewReader(b), int64(len(b)))
		if i < len(magic) {
			if !errors.Is(err, ErrNotLog) || x != nil {
				t.Errorf("byte %d: %v", i, err)
			}
			continue
		}
		before := 0
		for ends[before] <= i {
			before++
		}
		if d, ok := errors.AsType[*Damage](err); !ok || d.At+d.Lost != int64(len(b)) {
			t.Fatalf("byte %d: %v", i, err)
		}
		if got, want := values(t, x, whole), apply(none(), ops[:before]); !maps.Equal(got, want) {
			t.Errorf("byte %d: %v, want %v", i, got, want)
		}
	}
}

func TestTooLarge(t *testing.T) {
	for _, op := range []Op{{Key: string(make([]byte, maxKey+1))}, {Value: make([]byte, maxBody)}} {
		if b, err := appendOp(nil, op); err == nil || len(b) > 0 {
			t.Errorf("wrote %d bytes: %v", len(b), err)
		}
	}
}

// FuzzScan: any bytes are read up to the first that are no entry, and what was read is written as the same
// bytes.
func FuzzScan(f *testing.F) {
	whole, _ := encoded(f, []Op{{Key: "a", Value: []byte("one")}, {Key: "b"}, {Key: "a", Remove: true}})
	f.Add(whole)
	f.Add(whole[:len(whole)-2])
	f.Add(append(slices.Clone(whole), 0xff, 0xff, 0xff, 0xff, 0, 0, 0, 0, 1))
	f.Add(append(slices.Clone(whole), make([]byte, 64)...))
	f.Add([]byte("strait replica 1 00\n"))
	f.Fuzz(func(t *testing.T, b []byte) {
		x, err := scan(bytes.NewReader(b), int64(len(b)))
		if x == nil {
			return
		}
		if x.size > int64(len(b)) || x.live > x.size || err == nil && x.size != int64(len(b)) {
			t.Fatalf("%d of %d bytes, of which %d count: %v", x.size, len(b), x.live, err)
		}
		for key, value := range values(t, x, b) {
			s := x.spans[key]
			again, err := appendOp(nil, Op{Key: key, Value: []byte(value)})
			if err != nil || len(again) > int(s.size) {
				t.Fatalf("%q is written in %d bytes instead of %d: %v", key, len(again), s.size, err)
			}
		}
	})
}
