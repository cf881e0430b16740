package faults

import (
	"flag"
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"
	"time"

	"strait.io/strait/internal/problem"
	"strait.io/strait/internal/testutil"
)

var churnFor = flag.Duration("churn", 10*time.Second, "how long TestNoFalseAlarm goes on")

// Daemons are killed, stopped and started as an upgrade does it, get other prefixes, and their
// Services and endpoints come and go. Meanwhile no daemon reports any tunnel, because all of them
// carry. In the end one is cut, and is reported.
func TestNoFalseAlarm(t *testing.T) {
	machines := bridged(t, 5)
	lives, heard := make([]*process, len(machines)), make([]*alarms, len(machines))
	for i, m := range machines {
		lives[i] = m.start(t)
		heard[i] = listen(t, lives[i])
	}
	carry := func() {
		t.Helper()
		testutil.Eventually(t, detection, func() error {
			for i := range machines {
				for j, m := range machines {
					if i == j {
						continue
					}
					if err := heard[i].is(m, "carrying"); err != nil {
						return fmt.Errorf("c%d: %w", i+1, err)
					}
				}
			}
			return nil
		})
	}
	carry()
	random, did := rand.New(rand.NewPCG(1, 2)), map[string]int{}
	restart := func(i int, end func(*process, *testing.T)) {
		end(lives[i], t)
		lives[i] = machines[i].start(t)
		lives[i].isReady(t)
	}
	for began, n := time.Now(), 0; time.Since(began) < *churnFor; n++ {
		i := random.IntN(len(machines))
		m := machines[i]
		switch what := []string{"kill", "upgrade", "upgrade all", "prefixes", "services", "services", "services"}[random.IntN(7)]; what {
		case "kill":
			restart(i, (*process).kill)
			did[what]++
		case "upgrade":
			restart(i, (*process).stop)
			did[what]++
		case "upgrade all":
			for i := range machines {
				restart(i, (*process).stop)
			}
			did[what]++
		case "prefixes":
			m.config["nodePrefixes"] = []string{fmt.Sprintf("10.9.%d.0/24", i+1), fmt.Sprintf("10.%d.%d.0/24", 20+n%200, i+1)}
			restart(i, (*process).stop)
			did[what]++
		default:
			for k := range 20 {
				name := fmt.Sprintf("s%d", k)
				m.write(t, "manifests/"+name+".yaml", strings.ReplaceAll(service(name), "10.9.9.9", fmt.Sprintf("10.9.%d.%d", i+1, 1+random.IntN(250))))
			}
			did[what]++
			time.Sleep(time.Duration(random.IntN(1000)) * time.Millisecond)
		}
	}
	t.Logf("in %s: %v", *churnFor, did)
	carry()
	for i := range machines {
		for j, m := range machines {
			if i != j {
				heard[i].neverAccused(t, m, "a machine whose tunnel carries")
			}
		}
	}
	cut := machines[4]
	f := failing{t: t}
	began := time.Now()
	f.nft(cut.ns, closed)
	heard[0].reports(t, cut, problem.TunnelSilent, "closed in the end", began)
}
