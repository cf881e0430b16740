package inspect

import (
	"fmt"

	"strait.io/strait/datapath/socklb/layout"
)

// records calls each for every record at home of a socket. Programs write them while they are read, and nothing
// keeps a read from seeing half of a flow: so each is read again until it is as it was.
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

// settled reads a record until it is as it was.
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
