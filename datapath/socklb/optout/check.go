package optout

import (
	"fmt"

	"strait.io/strait/datapath/socklb/cgroup"
)

// Check reports whether Add would accept a cgroup, without adding it: its error has the reason why the cgroup
// cannot opt out.
func Check(path string) error {
	t, err := cgroup.OpenTree()
	if err != nil {
		return fmt.Errorf("add opt-out: %w", err)
	}
	defer t.Close()
	if _, _, err := t.Find(path); err != nil {
		return fmt.Errorf("add opt-out: %w", err)
	}
	return nil
}
