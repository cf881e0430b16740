package replica

import (
	"encoding/binary"
	"errors"
	"fmt"

	"strait.io/strait/clustermesh/record"
)

// An empty object takes one byte on the wire, and 150 in memory. A frame of such objects would take
// gigabytes, before anybody can tell who wrote it. So a record is measured before it is decoded: its
// objects must be about as long as the smallest that can be used.

// leastOf are the least sizes, in bytes, of the objects in a content's lists, by the list's field.
var leastOf = record.Least()

const (
	// leastObject is that of any other object in a list, as a port, and leastText that of a text or address.
	leastObject, leastText = 3, 2
	// fewNumbers is how many numbers a list can have, whatever they are.
	fewNumbers = 16
	// contentField is the field of a record that is its content.
	contentField = 3
)

// dense returns an error if a list in a record has more objects than its bytes can mean.
func dense(raw []byte) error {
	d := density{rest: raw}
	return d.item(0, 0)
}

// density reads CBOR, of which it knows only what decMode allows.
type density struct{ rest []byte }

// Major types (RFC 8949 §3.1).
const (
	bytesType, textType, arrayType, mapType, tagType = 2, 3, 4, 5, 6
)

var errShort = errors.New("the bytes end inside an item")

// head reads the head of an item.
func (d *density) head() (major byte, n uint64, err error) {
	if len(d.rest) == 0 {
		return 0, 0, errShort
	}
	major, n = d.rest[0]>>5, uint64(d.rest[0]&31)
	d.rest = d.rest[1:]
	if n < 24 {
		return major, n, nil
	}
	size := 1 << (n - 24)
	if n > 27 || len(d.rest) < size {
		return 0, 0, errShort
	}
	var wide [8]byte
	copy(wide[8-size:], d.rest)
	d.rest = d.rest[size:]
	return major, binary.BigEndian.Uint64(wide[:]), nil
}

// item measures an item at a depth: 0 is the record. Field is that of the map in which it is.
func (d *density) item(depth int, field uint64) error {
	major, n, err := d.head()
	switch {
	case err != nil:
		return err
	case (major == bytesType || major == textType || major == arrayType) && n > uint64(len(d.rest)), depth > 16:
		return errShort
	}
	switch major {
	case bytesType, textType:
		d.rest = d.rest[n:]
	case arrayType:
		return d.list(depth, field, int(n))
	case mapType:
		return d.object(depth, field, n)
	case tagType:
		return errors.New("it has a tag")
	}
	return nil
}

func (d *density) list(depth int, field uint64, n int) error {
	object := leastObject
	if l, is := leastOf[field]; is && depth == 2 {
		object = l
	}
	least, before := 0, len(d.rest)
	for range n {
		least += leastLen(d.rest, object, n)
		if err := d.item(depth+1, field); err != nil {
			return err
		}
	}
	if size := before - len(d.rest); size < least {
		return fmt.Errorf("field %d has %d objects in %d bytes, which mean nothing", field, n, size)
	}
	return nil
}

// leastLen is the least length of the next of n items in a list whose objects have one too. Numbers are in no
// list that this build reads, but an error for each would cost 80 bytes; later builds can have a few.
func leastLen(rest []byte, object, n int) int {
	if len(rest) == 0 {
		return 0
	}
	switch rest[0] >> 5 {
	case mapType:
		return object
	case bytesType, textType:
		return leastText
	}
	if n > fewNumbers {
		return 8
	}
	return 1
}

// object measures a map. Only the fields of a content matter: those of a record with a content.
func (d *density) object(depth int, within, n uint64) error {
	for range n {
		key, err := d.key(depth)
		if err != nil {
			return err
		}
		if depth > 1 || depth == 1 && within != contentField {
			key = 0
		}
		if err := d.item(depth+1, key); err != nil {
			return err
		}
	}
	return nil
}

// key reads a map's key: a number in what strait writes.
func (d *density) key(depth int) (uint64, error) {
	if len(d.rest) > 0 && d.rest[0]>>5 == 0 {
		_, n, err := d.head()
		return n, err
	}
	return 0, d.item(depth+1, 0)
}
