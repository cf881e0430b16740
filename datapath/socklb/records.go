package socklb

import "fmt"

// claimBits is CLAIM_BITS of bpf/lib/config.h.
const claimBits = 16

// owner is the cookie of the socket whose record it is, 0 if it is nobody's yet or any more. The bits above
// count those that try to take the place just now; a cookie that the kernel counted downwards is negative.
func (r socklbRecord) owner() uint64 { return uint64(int64(r.Cookie<<claimBits) >> claimBits) }

// records calls each for every record at home of a socket. Programs write them while they are read, and nothing
// keeps a read from seeing half of a flow: so each is read again until it is as it was.
func (r *Reader) records(each func(socklbRecord)) error {
	return all(r.maps.Sockets, func(i uint32, v socklbRecord) error {
		if v.owner() == 0 {
			return nil
		}
		for range readTries {
			before := v
			if err := r.maps.Sockets.Lookup(i, &v); err != nil {
				return fmt.Errorf("read record %d of %s: %w", i, r.maps.Sockets, err)
			}
			if v.owner() == before.owner() && v.Flow == before.Flow {
				break
			}
		}
		if v.owner() != 0 {
			each(v)
		}
		return nil
	})
}
