package statelog

import (
	"cmp"
	"errors"
	"fmt"
	"io"
	"slices"
)

// span is where an entry is in the file, in bytes.
type span struct{ at, size int64 }

// index is which entries of a log count: the last one of each key that is set.
type index struct {
	spans map[string]span
	// size is where the next entry goes: the bytes of all entries and of the first line. live are the bytes
	// of those that count, and of the first line.
	size, live int64
}

func newIndex() *index {
	return &index{spans: map[string]span{}, size: int64(len(magic)), live: int64(len(magic))}
}

// add notes the next entry, which takes size bytes.
func (x *index) add(key string, remove bool, size int64) {
	x.live -= x.spans[key].size
	delete(x.spans, key)
	if !remove {
		x.spans[key] = span{x.size, size}
		x.live += size
	}
	x.size += size
}

// minGarbage is how many bytes that count no more are not worth a compaction.
const minGarbage = 1 << 20

// bloated reports whether more than half of the log counts no more.
func (x *index) bloated() bool { return x.size > 2*x.live+minGarbage }

// keys returns the keys in the order of their entries.
func (x *index) keys() []string {
	out := make([]string, 0, len(x.spans))
	for k := range x.spans {
		out = append(out, k)
	}
	slices.SortFunc(out, func(a, b string) int { return cmp.Compare(x.spans[a].at, x.spans[b].at) })
	return out
}

// Damage means that a log can be read only up to a byte. What is before it counts.
type Damage struct {
	// At is the first byte of the entry that cannot be read, and Lost is how many bytes come from there on.
	At, Lost int64
	// Keys is how many keys have a value before it.
	Keys  int
	Cause error
}

func (d *Damage) Error() string {
	return fmt.Sprintf("the entry at byte %d cannot be read (%v): %d bytes are dropped, and %d keys before it are in use", d.At, d.Cause, d.Lost, d.Keys)
}

func (d *Damage) Unwrap() error { return d.Cause }

// scan reads a log of size bytes up to the first entry that is damaged. Then the error is a Damage, and
// what is before it is returned with it. With any other error, the log could not be read.
func scan(r io.Reader, size int64) (*index, error) {
	entries, err := newReader(r)
	if err != nil {
		return nil, err
	}
	x := newIndex()
	for {
		op, n, err := entries.next()
		if errors.Is(err, io.EOF) {
			return x, nil
		}
		if err == nil {
			err = x.fits(op, n)
		}
		if err != nil {
			return x, &Damage{At: x.size, Lost: max(size-x.size, 0), Keys: len(x.spans), Cause: err}
		}
		x.add(op.Key, op.Remove, n)
	}
}

// fits returns an error if there is no room for another entry of n bytes.
func (x *index) fits(op Op, n int64) error {
	_, known := x.spans[op.Key]
	switch {
	case x.size+n > maxFile:
		return fmt.Errorf("the log has more than %d bytes", int64(maxFile))
	case !op.Remove && !known && len(x.spans) >= maxKeys:
		return fmt.Errorf("the log has more than %d keys", maxKeys)
	}
	return nil
}
