package splice

import (
	"bytes"
	"errors"
	"slices"
	"testing"

	"pgregory.net/rapid"
)

func mustPatch(t testing.TB, base, diff []byte, want []byte) {
	t.Helper()
	got, err := Patch(base, diff, len(want))
	if err != nil || !bytes.Equal(got, want) {
		t.Fatalf("%q with %x is %q, %v; want %q", base, diff, got, err, want)
	}
	if _, err := Patch(base, diff, len(want)-1); len(want) > 0 && !errors.Is(err, ErrBase) {
		t.Errorf("a result of more bytes than are allowed: %v", err)
	}
}

// TestDiff: typical changes are small.
func TestDiff(t *testing.T) {
	long := func() (out []byte) {
		for i := range 1300 {
			out = append(out, byte(i), byte(i*i>>3), byte(i*7))
		}
		return out
	}()
	edit := func(at, remove int, insert string) []byte {
		return slices.Concat(long[:at], []byte(insert), long[at+remove:])
	}
	for _, c := range []struct {
		name       string
		base, want []byte
		most       int
	}{
		{"nothing", nil, nil, 0},
		{"the same", long, long, 4},
		{"from nothing", nil, []byte("new"), 4},
		{"to nothing", long, nil, 0},
		{"a byte in the middle", long, edit(2000, 1, "\xff"), 10},
		{"a byte at the beginning", long, edit(0, 1, "\xff"), 7},
		{"a byte at the end", long, edit(len(long)-1, 1, "\xff"), 7},
		{"something is inserted", long, edit(1500, 0, "a new endpoint"), 24},
		{"something is removed", long, edit(1500, 300, ""), 10},
		{"two bytes far from each other", long, slices.Concat(edit(100, 1, "\xff")[:2000], []byte{0xfe}, long[2001:]), 18},
		{"something moved", long, slices.Concat(long[2000:], long[:2000]), 16},
		{"something is repeated", long, slices.Concat(long, long), 12},
	} {
		diff := Diff(c.base, c.want)
		mustPatch(t, c.base, diff, c.want)
		if len(diff) > c.most {
			t.Errorf("%s: %d bytes, more than %d: %x", c.name, len(diff), c.most, diff)
		}
	}
}

// TestRandom: whatever changes, the difference leads there, and is hardly longer than what is new.
func TestRandom(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		some := rapid.SliceOfN(rapid.ByteRange(0, 3), 0, 300)
		base := some.Draw(t, "base")
		want := slices.Clone(base)
		for range rapid.IntRange(0, 5).Draw(t, "edits") {
			from := rapid.IntRange(0, len(want)).Draw(t, "from")
			to := rapid.IntRange(from, len(want)).Draw(t, "to")
			want = slices.Concat(want[:from], some.Draw(t, "new"), want[to:])
		}
		diff := Diff(base, want)
		got, err := Patch(base, diff, len(want))
		if err != nil || !bytes.Equal(got, want) {
			t.Fatalf("%x with %x is %x, %v; want %x", base, diff, got, err, want)
		}
		if len(diff) > len(want)+len(want)/100+3 {
			t.Errorf("%d bytes for %d", len(diff), len(want))
		}
	})
}

// FuzzPatch: what is no difference from a base is an error, or gives no more bytes than are
// allowed.
func FuzzPatch(f *testing.F) {
	f.Add([]byte("base"), Diff([]byte("base"), []byte("a base")), 100)
	f.Add([]byte("base"), []byte{0, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 1}, 100)
	f.Add([]byte{}, []byte{0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 1}, 0)
	f.Fuzz(func(t *testing.T, base, diff []byte, most int) {
		got, err := Patch(base, diff, most)
		if err == nil && len(got) > max(0, most) {
			t.Errorf("%d bytes, more than %d", len(got), most)
		}
	})
}

// FuzzDiff: the difference between any two leads from one to the other.
func FuzzDiff(f *testing.F) {
	f.Add([]byte("what was before"), []byte("what is now"))
	f.Fuzz(func(t *testing.T, base, want []byte) { mustPatch(t, base, Diff(base, want), want) })
}

func BenchmarkDiff(b *testing.B) {
	for name, size := range map[string]int{"node": 1300, "cluster": 98_000} {
		base := make([]byte, size)
		for i := range base {
			base[i] = byte(i * i >> 5)
		}
		want := slices.Clone(base)
		want[10]++
		want[size/2]++
		b.Run(name, func(b *testing.B) {
			for b.Loop() {
				Diff(base, want)
			}
		})
	}
}
