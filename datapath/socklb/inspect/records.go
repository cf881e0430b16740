//go:build linux

package inspect

import (
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"

	"golang.org/x/sys/unix"

	"strait.io/strait/datapath/socklb/layout"
)

// records calls each for every record that a socket has at home. Programs write records while they
// are read, and nothing prevents a read from seeing half of a flow. So each record is read until
// two reads agree.
func (r *Reader) records(each func(layout.Record)) error {
	return layout.Each(r.maps.Sockets, func(i uint32, v layout.Record) error {
		if v.Owner() == 0 {
			return nil
		}
		v, err := r.settled(i, v)
		if err == nil && v.Owner() != 0 {
			each(v)
		}
		return err
	})
}

// Owners returns the cookies of the sockets that have a record at home, without duplicates and in no
// order.
func (r *Reader) Owners() ([]uint64, error) {
	owners := map[uint64]struct{}{}
	err := layout.Each(r.maps.Sockets, func(_ uint32, v layout.Record) error {
		if o := v.Owner(); o != 0 {
			owners[o] = struct{}{}
		}
		return nil
	})
	if err != nil {
		return nil, fmt.Errorf("list owners of records: %w", err)
	}
	return slices.Collect(maps.Keys(owners)), nil
}

// settled rereads a record until two reads agree, at most readTries times.
func (r *Reader) settled(i uint32, v layout.Record) (layout.Record, error) {
	for range readTries {
		before := v
		if err := r.maps.Sockets.Lookup(i, &v); err != nil {
			return v, fmt.Errorf("read record %d of %s: %w", i, r.maps.Sockets, err)
		}
		if v.Owner() == before.Owner() && v.Flow == before.Flow {
			break
		}
	}
	return v, nil
}

// stored calls each for every record that a socket has in its own storage, as an iterator in the
// kernel lists it. There are none where the kernel has no such iterators. A record can change while
// it is listed. An iterator over open files lists a record for each process that has the socket; it
// is returned once.
func (r *Reader) stored(each func(layout.Row)) error {
	seen := map[layout.Row]struct{}{}
	once := func(row layout.Row) {
		if _, again := seen[row]; !again {
			seen[row] = struct{}{}
			each(row)
		}
	}
	for name := range layout.Lists {
		f, err := os.Open(filepath.Join(r.pins, layout.LinksDir, name))
		if errors.Is(err, fs.ErrNotExist) {
			continue
		}
		if err != nil {
			return fmt.Errorf("open list %s: %w", name, err)
		}
		err = rows(f, once)
		f.Close()
		if err != nil {
			return fmt.Errorf("read list %s: %w", name, err)
		}
	}
	return nil
}

// rows decodes what an iterator prints.
func rows(f io.Reader, each func(layout.Row)) error {
	buf := make([]byte, 256*binary.Size(layout.Row{}))
	have := 0
	for {
		n, err := f.Read(buf[have:])
		have += n
		used, decodeErr := 0, error(nil)
		for ; have-used >= binary.Size(layout.Row{}); used += binary.Size(layout.Row{}) {
			var row layout.Row
			if _, decodeErr = binary.Decode(buf[used:have], binary.NativeEndian, &row); decodeErr != nil {
				return decodeErr
			}
			each(row)
		}
		have = copy(buf, buf[used:have])
		switch {
		case errors.Is(err, io.EOF) && have > 0:
			return io.ErrUnexpectedEOF
		case errors.Is(err, io.EOF):
			return nil
		case err != nil && !errors.Is(err, unix.EAGAIN): // the kernel pauses after a million sockets
			return err
		}
	}
}
