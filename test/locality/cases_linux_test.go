package locality

import (
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"strait.io/strait/internal/testutil"
)

// pods is how many each cluster has: enough for a brown-out, and for the curve of docs/locality.md.
const pods = 30

// TestTraffic changes what pods, Services and clusters say of themselves, while a pod calls.
func TestTraffic(t *testing.T) {
	t.Parallel()
	w := newWorld(t, pods)
	w.run("BrownOut", w.brownOut)
	w.run("Curve", w.curve)
	w.run("Rollout", w.rollout)
	w.run("ZoneFlaps", w.zoneFlaps)
	w.run("PodFlaps", w.podFlaps)
	w.run("DrainService", w.drainService)
	w.run("DrainCluster", w.drainCluster)
	w.run("Isolated", w.isolated)
	w.run("RemoteHeld", w.remoteHeld)
}

// brownOut: half of the pods are not ready. They can bear 70 %, and the rest goes to both other
// clusters.
func (w *world) brownOut() {
	l, since := w.call(5*time.Millisecond), time.Now()
	w.near.ready(pods / 2)
	want := shares{"us-east": 0.7, "us-west": 0.15, "eu-central": 0.15}
	w.settles(want)
	w.counted(1500, want)
	w.near.ready(pods)
	w.settles(shares{"us-east": 1})
	w.counted(300, shares{"us-east": 1})
	l.mustBeWhole(since)
}

// rollout: weights move the Service to another cluster little by little, and away from all tiers
// and back. What is asked for is so at once, and no call fails.
func (w *world) rollout() {
	l, since := w.call(5*time.Millisecond), time.Now()
	for _, weight := range []int{0, 10, 50, 100} {
		w.near.annotate("service.strait.io/weights", fmt.Sprintf("us-east=%d,us-west=%d", 100-weight, weight))
		want := shares{"us-east": 1 - float64(weight)/100, "us-west": float64(weight) / 100}
		w.settlesWithin(want, atOnce)
		w.counted(500, want)
	}
	w.near.annotate("service.strait.io/weights", "")
	w.near.annotate("service.strait.io/locality", "clusterset")
	third := 1.0 / 3
	w.settlesWithin(shares{"us-east": third, "us-west": third, "eu-central": third}, atOnce)
	w.near.annotate("service.strait.io/locality", "")
	w.settlesWithin(shares{"us-east": 1}, atOnce)
	w.counted(300, shares{"us-east": 1})
	l.mustBeWhole(since)
}

// atOnce is well below the ramp of ten seconds, also on a busy machine.
const atOnce = 5 * time.Second

// zoneFlaps: all pods of the callers' cluster come and go, and are never ready for a second. So
// traffic leaves once and stays away, and the map is not written again.
func (w *world) zoneFlaps() {
	l, since := w.call(5*time.Millisecond), time.Now()
	w.near.ready(0)
	w.settles(shares{"us-west": 0.5, "eu-central": 0.5})
	gone := time.Now()
	const up, times = 400 * time.Millisecond, 12
	writes, slow := w.watchWrites(), 0
	for range times {
		began := time.Now()
		w.near.ready(pods)
		time.Sleep(up)
		w.near.ready(0)
		if time.Since(began) > 2*up { // on a busy machine, it was ready for about a second
			slow++
		}
		time.Sleep(up)
	}
	n := writes()
	w.Logf("the frontend was written %d times while the zone flapped %d times, %d of them slowly", n, times, slow)
	if n > 3+2*slow {
		w.Errorf("the frontend was written %d times", n)
	}
	if got, n := w.counts.between(gone, time.Now()); slow == 0 && got["us-east"] > 0.05 {
		w.Errorf("of %d connections, %.1f %% went to pods that flap", n, 100*got["us-east"])
	}
	l.mustBeWhole(since)
}

// podFlaps: one pod of thirty comes and goes. The others bear its part, so nothing leaves the
// cluster.
func (w *world) podFlaps() {
	l, since := w.call(5*time.Millisecond), time.Now()
	writes := w.watchWrites()
	const times = 10
	for range times {
		w.near.ready(pods - 1)
		time.Sleep(200 * time.Millisecond)
		w.near.ready(pods)
		time.Sleep(200 * time.Millisecond)
	}
	if n := writes(); n > 2*times {
		w.Errorf("the frontend was written %d times while a pod flapped %d times", n, times)
	}
	if got, n := w.counts.between(since, time.Now()); got["us-east"] < 1 {
		w.Errorf("of %d connections, %.1f %% stayed", n, 100*got["us-east"])
	}
	l.mustBeWhole(since)
}

// drainService: the Service in one cluster gets nothing new while it is drained.
func (w *world) drainService() {
	l, since := w.call(5*time.Millisecond), time.Now()
	w.near.annotate("strait.io/drain", "true")
	away := shares{"us-west": 0.5, "eu-central": 0.5}
	w.settles(away)
	w.counted(500, away)
	if r := w.reason("us-east"); !strings.Contains(r, "the Service in cluster us-east is drained") {
		w.Errorf("the reason is %q", r)
	}
	w.near.annotate("strait.io/drain", "")
	w.settles(shares{"us-east": 1})
	l.mustBeWhole(since)
}

// drainCluster: a drain takes what it says at each time, and no call fails.
func (w *world) drainCluster() {
	const over = 20 * time.Second
	l, since := w.call(5*time.Millisecond), time.Now()
	out := w.near.strait("cluster", "drain", "us-east", "--over", over.String(), "--manifest", w.near.path("manifests"))
	began := time.Now()
	if !strings.Contains(out, "is drained") {
		w.Errorf("strait cluster drain says:\n%s", out)
	}
	time.Sleep(over + 2*time.Second)
	w.settles(shares{"us-west": 0.5, "eu-central": 0.5})
	const slot = 4 * time.Second
	for at := time.Duration(0); at < over; at += slot {
		got, n := w.counts.between(began.Add(at), began.Add(at+slot))
		want := 1 - (at+slot/2).Seconds()/over.Seconds()
		w.Logf("%2.0f s to %2.0f s: %.0f %% of %d stay, the drain leaves %.0f %%", at.Seconds(), (at + slot).Seconds(), 100*got["us-east"], n, 100*want)
		// The annotation has the second in which it was written, and the plan steps once a second.
		if off := got["us-east"] - want; off < -0.2 || off > 0.2 {
			w.Errorf("from %s to %s, %.0f %% stay, want %.0f %%", at, at+slot, 100*got["us-east"], 100*want)
		}
	}
	if got, n := w.counts.between(began.Add(over+1500*time.Millisecond), time.Now()); n == 0 || got["us-east"] > 0 {
		w.Errorf("of %d connections after the drain, %.1f %% went to the drained cluster", n, 100*got["us-east"])
	}
	if out := w.near.strait("status"); !strings.Contains(out, "drained 100 %") {
		w.Errorf("status does not say that us-east is drained:\n%s", out)
	}
	w.near.strait("cluster", "undrain", "us-east", "--manifest", w.near.path("manifests"))
	w.settles(shares{"us-east": 1})
	l.mustBeWhole(since)
}

// isolated: the callers' cluster hears no other. Its own pods serve, and nothing is withdrawn. If
// it has none, the pods of clusters that are not heard stay in use, and explain says so: they
// answer again as soon as the cable does.
func (w *world) isolated() {
	l, since := w.call(5*time.Millisecond), time.Now()
	w.near.cut()
	defer w.near.plug()
	w.unheard()
	w.counted(500, shares{"us-east": 1})
	if r := w.reason("us-west"); !strings.Contains(r, "standby") {
		w.Errorf("a pod of a cluster that is not heard stands by because %q", r)
	}
	l.mustBeWhole(since)

	w.near.ready(0)
	w.settles(shares{"us-west": 0.5, "eu-central": 0.5})
	if r := w.reason("us-west"); !strings.Contains(r, "node does not answer, but nothing else is ready") {
		w.Errorf("pods that are not heard are used because %q", r)
	}
	w.near.plug()
	w.near.joined()
	w.answering("us-west", "eu-central")
	l, since = w.call(5*time.Millisecond), time.Now()
	w.counted(500, shares{"us-west": 0.5, "eu-central": 0.5})
	l.mustBeWhole(since)
}

// remoteHeld: all other daemons are dead, and the callers' own has restarted: all that it knows of
// the others is from before. If its cluster has no pods, theirs still answer, and explain says what
// they are.
func (w *world) remoteHeld() {
	w.near.ready(0)
	away := shares{"us-west": 0.5, "eu-central": 0.5}
	w.settles(away)
	l, since := w.call(5*time.Millisecond), time.Now()
	w.west.kill()
	w.central.kill()
	w.near.kill()
	w.near.start()
	w.settles(away)
	w.counted(500, away)
	if r := w.reason("us-west"); !strings.Contains(r, "(held: its node is not heard)") && !strings.Contains(r, "(its node's daemon is down, its machine answers)") {
		w.Errorf("pods of a cluster that is not heard are used because %q", r)
	}
	w.unheard()
	w.counted(500, away)
	l.mustBeWhole(since)
	w.west.start()
	w.central.start()
	w.near.joined()
}

// answering waits until the plan knows that the nodes of clusters answer again. The plan is behind
// the states of the clusters, and while only one of them answers, it gets all connections.
func (w *world) answering(clusters ...string) {
	w.Helper()
	testutil.Eventually(w, patience, func() error {
		for _, c := range clusters {
			if r := w.reason(c); strings.Contains(r, "does not answer") {
				return fmt.Errorf("of a pod in %s, strait says: %s", c, r)
			}
		}
		return nil
	})
}

// unheard waits until the callers' node hears no other cluster.
func (w *world) unheard() {
	w.Helper()
	w.states("held", "quiet")
}

// joined waits until the cluster hears all others.
func (c *cluster) joined() {
	c.w.Helper()
	c.w.states("joined")
}

func (w *world) states(want ...string) {
	w.Helper()
	testutil.Eventually(w, 2*patience, func() error {
		status, err := w.near.api().Status(w.Context())
		if err != nil {
			return err
		}
		var errs []error
		for _, c := range status.Clusters {
			if c.Name != w.near.name && !strings.Contains(strings.Join(want, " "), string(c.State)) {
				errs = append(errs, fmt.Errorf("%s is %s, want %s", c.Name, c.State, strings.Join(want, " or ")))
			}
		}
		return errors.Join(errs...)
	})
}
