package version

import "testing"

func TestBetween(t *testing.T) {
	for _, tc := range []struct {
		from, to string
		want     Step
	}{
		{"v0.1.0", "v0.1.0", Same},
		{"v0.1.0", "v0.1.7", Same},
		{"v0.1.7", "v0.1.0", Same},
		{"v0.1.0-rc.1", "v0.1.0", Same},
		{"v0.1.0", "v0.2.0-rc.1", Next},
		{"v0.9.3", "v0.10.0", Next},
		{"v0.2.0", "v0.1.9", Back},
		{"v0.1.0", "v0.3.0", Far},
		{"v0.3.0", "v0.1.0", FarBack},
		{"v0.9.0", "v1.0.0", Far},
		{"v1.0.0", "v0.9.0", FarBack},
		{"v1.1.0+build.5", "v1.2.0", Next},
		{"v0.1.0-12-g0123abc", "v0.1.1", Same}, // as git describe names a commit after a release
		{"dev", "dev", Same},
		{"dev", "v0.1.0", Unknown},
		{"v0.1.0", "", Unknown},
		{"0.1.0", "v0.1.0", Unknown},
		{"v0.99999999999999999999.0", "v0.1.0", FarBack},
	} {
		if got := Between(tc.from, tc.to); got != tc.want {
			t.Errorf("from %s to %s: %d, want %d", tc.from, tc.to, got, tc.want)
		}
	}
}

func TestAfter(t *testing.T) {
	if got := After("v0.9.3"); got != "v0.10" {
		t.Errorf("after v0.9.3 comes %s", got)
	}
}
