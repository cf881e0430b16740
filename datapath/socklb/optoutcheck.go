package socklb

import "fmt"

// CheckOptOut is AddOptOut's word on a cgroup without the deed: its error says why the cgroup cannot opt out.
func CheckOptOut(cgroup string) error {
	t, err := openTree()
	if err != nil {
		return fmt.Errorf("add opt-out: %w", err)
	}
	defer t.close()
	if _, _, err := t.find(cgroup); err != nil {
		return fmt.Errorf("add opt-out: %w", err)
	}
	return nil
}
