package replica

import (
	"fmt"

	"strait.io/strait/clustermesh"
)

// maxStamp leaves room above every stamp, so that a writer can always go beyond what it finds.
const maxStamp = 1 << 63

// validate checks what the protocol itself relies on: whose record it is, and how it compares with
// others. What the record says is clustermesh.Usable's business.
func validate(rec clustermesh.Record) error {
	if err := rec.Origin.Check(); err != nil {
		return fmt.Errorf("record of %q/%q: %w", rec.Origin.Cluster, rec.Origin.Node, err)
	}
	if rec.Stamp.Epoch == 0 || rec.Stamp.Epoch >= maxStamp || rec.Stamp.Version >= maxStamp {
		return fmt.Errorf("record of %s: stamp %s is out of range", rec.Origin, rec.Stamp)
	}
	return nil
}
