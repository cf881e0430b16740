package inspect

import (
	"fmt"

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
