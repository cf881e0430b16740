package writer

import (
	"testing"

	"k8s.io/apimachinery/pkg/types"
)

// What is kept of a UID is all of it, whatever its form, and no two are one.
func TestUID(t *testing.T) {
	seen := map[uid]types.UID{}
	for _, u := range []types.UID{
		"", "1", "0f8fad5b-d9cb-469f-a165-70867728950e", "0F8FAD5B-D9CB-469F-A165-70867728950E", "0f8fad5bd9cb469fa16570867728950e",
		"{0f8fad5b-d9cb-469f-a165-70867728950e}", "urn:uuid:0f8fad5b-d9cb-469f-a165-70867728950e", "00000000-0000-0000-0000-000000000000",
		"ffffffff-ffff-ffff-ffff-ffffffffffff", "0f8fad5b-d9cb-469f-a165-70867728950e ",
	} {
		id := uidOf(u)
		if got := id.UID(); got != u {
			t.Errorf("of %q there is %q", u, got)
		}
		if other, twice := seen[id]; twice {
			t.Errorf("%q and %q are one", u, other)
		}
		seen[id] = u
	}
}

func TestVersion(t *testing.T) {
	for _, v := range []string{"", "0", "7", "007", "+7", "18446744073709551615", "18446744073709551616", "a"} {
		if got := versionOf(v).String(); got != v {
			t.Errorf("of %q there is %q", v, got)
		}
	}
}
