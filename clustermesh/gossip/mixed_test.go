package gossip

import (
	"fmt"
	"testing"
)

// TestMixedVersions: daemons that have only streams of one direction, and those that write both
// ways on one connection, hear each other, whatever order they are upgraded and set back in.
func TestMixedVersions(t *testing.T) {
	t.Parallel()
	first := config(origin("a", "n1"))
	configs := []Config{first, config(origin("a", "n2"), first.Bind), config(origin("b", "n1"), first.Bind)}
	daemons := make([]*daemon, len(configs))
	for i := range configs {
		configs[i].StateDir = t.TempDir()
	}
	for step, older := range [][]bool{{true, true, true}, {false, true, true}, {false, true, false}, {false, false, false}, {true, false, false}, {true, false, true}} {
		for i := range configs {
			if daemons[i] != nil && configs[i].oneWay == older[i] {
				continue
			}
			if daemons[i] != nil {
				daemons[i].stop()
			}
			configs[i].oneWay = older[i]
			daemons[i] = start(t, configs[i])
		}
		for i, d := range daemons {
			d.say(10*step + i)
		}
		eventually(t, fmt.Sprintf("with older daemons %v, all hold what all say", older), func() bool {
			for _, d := range daemons {
				for i := range daemons {
					if d.said(configs[i].Self) != 10*step+i {
						return false
					}
				}
			}
			return true
		})
	}
}
