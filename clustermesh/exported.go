package clustermesh

import "fmt"

// Limits of the labels, or of the annotations, that an export carries to other clusters. A record
// is gossiped as a whole, so one export must not make it large.
const (
	maxExported      = 128
	maxExportedBytes = 64 << 10
)

// CheckExported returns an error if a map of exported labels or annotations exceeds these limits.
func CheckExported(m map[string]string) error {
	size := 0
	for k, v := range m {
		size += len(k) + len(v)
	}
	switch {
	case len(m) > maxExported:
		return fmt.Errorf("%d entries exceed the limit of %d", len(m), maxExported)
	case size > maxExportedBytes:
		return fmt.Errorf("%d bytes exceed the limit of %d", size, maxExportedBytes)
	}
	return nil
}
