package release

import (
	"crypto/sha256"
	"fmt"
	"maps"
	"slices"
	"strings"
)

// Sums returns what sha256sum would print of files, by their names.
func Sums(files map[string][]byte) []byte {
	var out strings.Builder
	for _, name := range slices.Sorted(maps.Keys(files)) {
		fmt.Fprintf(&out, "%x  %s\n", sha256.Sum256(files[name]), name)
	}
	return []byte(out.String())
}
