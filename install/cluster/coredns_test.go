package cluster

import "testing"

// TestDNSLeft: an attempt that ended half way is taken up where it ended.
func TestDNSLeft(t *testing.T) {
	const plain, taught = ".:53 {}", ".:53 { multicluster }"
	mark := corefileHash(taught)
	for _, tc := range []struct {
		name, have, mark, want string
		ours                   bool
		write, roll            bool
	}{
		{"setup of what was never taught", plain, "", taught, true, true, true},
		{"setup again", taught, mark + ".7", taught, true, false, false},
		{"setup again, done by an earlier version", taught, mark, taught, true, false, false},
		{"setup again, where the restart was not asked for", taught, "", taught, true, false, true},
		{"setup again, restarted for another Corefile", taught, "0011223344556677.7", taught, true, false, true},
		{"setup again, where a user took it back", plain, mark + ".7", taught, true, true, true},
		{"undo", taught, mark + ".7", plain, false, true, true},
		{"undo of what a user added by hand", taught, "", plain, false, true, false},
		{"undo again", plain, "", plain, false, false, false},
		{"undo again, where the restart was not asked for", plain, mark, plain, false, false, true},
	} {
		d := DNS{Corefile: tc.have, mark: tc.mark}
		if write, roll := d.left(tc.want, tc.ours); write != tc.write || roll != tc.roll {
			t.Errorf("%s: write %v, roll %v", tc.name, write, roll)
		}
	}
}
