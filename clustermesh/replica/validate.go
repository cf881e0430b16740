package replica

import (
	"fmt"

	"strait.io/strait/clustermesh"
)

// maxStamp bounds stamps so that there is room above each: a writer can always write above a stamp
// that it finds.
const maxStamp = 1 << 63

// validate checks what the protocol itself relies on: the record's origin and stamp.
// record.Usable checks the content.
func validate(rec clustermesh.Record) error {
	if err := rec.Origin.Check(); err != nil {
		return fmt.Errorf("record of %q/%q: %w", rec.Origin.Cluster, rec.Origin.Node, err)
	}
	if rec.Stamp.Epoch == 0 || rec.Stamp.Epoch >= maxStamp || rec.Stamp.Version >= maxStamp {
		return fmt.Errorf("record of %s: stamp %s is out of range", rec.Origin, rec.Stamp)
	}
	return nil
}
