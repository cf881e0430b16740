package gossip

import "testing"

// TestBytes: two daemons count what they send each other, over both transports. What one dials, the
// other accepts.
func TestBytes(t *testing.T) {
	t.Parallel()
	first := config(origin("a", "n1"))
	ds := []*daemon{start(t, first), start(t, config(origin("b", "n1"), first.Bind))}
	for i, d := range ds {
		d.say(i)
	}
	eventually(t, "both hold what both say", func() bool {
		return ds[0].said(ds[1].cfg.Self) == 1 && ds[1].said(ds[0].cfg.Self) == 0
	})
	for _, d := range ds {
		eventually(t, "bytes of each kind are counted", func() bool {
			counts := d.Bytes()
			for _, c := range counts {
				if c.Bytes == 0 {
					return false
				}
			}
			return len(counts) == 4
		})
		t.Logf("%s: %v", d.cfg.Self, d.Bytes())
	}
}
