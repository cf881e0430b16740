// Package splice makes small differences between the bytes of two versions of something, and
// applies them.
//
// Inputs are bytes; outputs are a difference, and the bytes after it. Pure. It must not know what
// the bytes mean: so what a build does not understand passes through, and the result is exactly
// what somebody signed, or is refused.
//
// A difference is pairs of what to insert and what to copy of the base: the length of an insertion
// (uvarint), its bytes, where the copy begins, relative to the end of the last one (varint), and
// its length (uvarint). The last insertion can be without a copy.
package splice

import (
	"encoding/binary"
	"errors"
	"math/bits"
)

const (
	// window is how many bytes must be the same to be found anywhere in the base.
	window = 8
	// least is how many bytes a copy has at least that goes on where the last one ended, or behind
	// as many bytes as were inserted since. It costs three bytes.
	least = 4
)

// Diff returns how to get from base to want.
func Diff(base, want []byte) []byte {
	d := differ{base: base, want: want, index: indexOf(base)}
	for d.at < len(want) {
		if from, n := d.match(); n > 0 {
			d.copy(from, n)
		} else {
			d.at++
		}
	}
	if d.begin < len(want) {
		d.insert()
	}
	return d.out
}

// differ is how far Diff has come.
type differ struct {
	base, want []byte
	index      index
	out        []byte
	// What is before begin is written; what is between that and at will be inserted.
	begin, at int
	end       int // of the last copy, in base
}

// match returns what to copy here, in base, and how many bytes of it; 0 for nothing.
func (d *differ) match() (from, n int) {
	for _, next := range [...]int{d.end, d.end + d.at - d.begin} {
		if k := d.same(next); k >= least && k > n {
			from, n = next, k
		}
	}
	if n >= 2*window {
		return from, n
	}
	if found, any := d.index.find(d.want[d.at:]); any {
		if k := d.same(found); k >= window && k > n+window/2 {
			from, n = found, k
		}
	}
	return from, n
}

// same returns how many bytes are the same here and at a place in base.
func (d *differ) same(from int) (n int) {
	if from < 0 || from > len(d.base) {
		return 0
	}
	a, b := d.base[from:], d.want[d.at:]
	for n < len(a) && n < len(b) && a[n] == b[n] {
		n++
	}
	return n
}

// copy writes what is to be inserted, and a copy, which can begin earlier than here.
func (d *differ) copy(from, n int) {
	for from > 0 && d.at > d.begin && d.base[from-1] == d.want[d.at-1] {
		from, d.at, n = from-1, d.at-1, n+1
	}
	d.insert()
	d.out = binary.AppendVarint(d.out, int64(from-d.end))
	d.out = binary.AppendUvarint(d.out, uint64(n))
	d.at += n
	d.begin, d.end = d.at, from+n
}

func (d *differ) insert() {
	d.out = binary.AppendUvarint(d.out, uint64(d.at-d.begin))
	d.out = append(d.out, d.want[d.begin:d.at]...)
	d.begin = d.at
}

// index finds places in bytes by the window that begins there: one place for each hash.
type index struct {
	of    []byte
	place []int32 // plus one; 0 for none
	shift int
}

func indexOf(of []byte) index {
	size := bits.Len(uint(max(len(of), 1)))
	i := index{of: of, place: make([]int32, 1<<size), shift: 64 - size}
	for at := len(of) - window; at >= 0; at-- { // the first of several places stays
		i.place[i.hash(of[at:])] = int32(at) + 1
	}
	return i
}

// hash multiplies by the odd number nearest to 2^64 divided by the golden ratio (Knuth, 6.4).
func (i index) hash(b []byte) uint64 {
	return binary.LittleEndian.Uint64(b) * 0x9E3779B97F4A7C15 >> i.shift
}

func (i index) find(b []byte) (at int, any bool) {
	if len(b) < window {
		return 0, false
	}
	at = int(i.place[i.hash(b)]) - 1
	return at, at >= 0
}

// ErrBase means that a difference is not one from this base, or is damaged.
var ErrBase = errors.New("the difference does not fit")

// Patch returns what Diff was made for, from the same base. The result has at most so many bytes.
// Of a difference from another base it returns ErrBase or other bytes: the caller must know which
// bytes it wants, by a checksum or a signature.
func Patch(base, diff []byte, most int) ([]byte, error) {
	var out []byte
	end := 0
	for len(diff) > 0 {
		n, rest, ok := length(diff, len(diff))
		if !ok || n > len(rest) || n > most-len(out) {
			return nil, ErrBase
		}
		out, diff = append(out, rest[:n]...), rest[n:]
		if len(diff) == 0 {
			break
		}
		offset, k := binary.Varint(diff)
		if k <= 0 || offset < int64(-end) || offset > int64(len(base)-end) {
			return nil, ErrBase
		}
		from := end + int(offset)
		if n, diff, ok = length(diff[k:], len(base)-from); !ok || n > most-len(out) {
			return nil, ErrBase
		}
		out, end = append(out, base[from:from+n]...), from+n
	}
	return out, nil
}

// length reads a length of at most so many bytes.
func length(b []byte, most int) (n int, rest []byte, ok bool) {
	u, k := binary.Uvarint(b)
	if k <= 0 || u > uint64(most) {
		return 0, nil, false
	}
	return int(u), b[k:], true
}
