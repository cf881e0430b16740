package sockdestroy

import "testing"

// TestMaxTargets: user space hands over no more than the map takes.
func TestMaxTargets(t *testing.T) {
	spec, err := loadSockdestroy()
	if err != nil {
		t.Fatal(err)
	}
	if got := spec.Maps[sockdestroyMapTargets].MaxEntries; got != maxTargets {
		t.Errorf("the map takes %d targets, and maxTargets is %d", got, maxTargets)
	}
}
