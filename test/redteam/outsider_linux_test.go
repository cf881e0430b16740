package redteam

import (
	"fmt"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	"strait.io/strait/daemon/api"
	"strait.io/strait/internal/testutil"
)

// TestOutsider: a stranger who reaches the gossip port without the key can make a daemon neither grow, nor
// fill its log or its status, nor miss what the other cluster says.
func TestOutsider(t *testing.T) {
	if !inside(t) {
		return
	}
	w := newWorld(t, nil)
	w.west.hears("east", 1)
	rss, logged := w.west.rss(), w.west.log.count()
	for _, attack := range []string{"silent", "flood", "garbage", "replay"} {
		w.west.outsider(attack)
	}
	most := rss
	var slowest time.Duration
	for n, began := 2, time.Now(); time.Since(began) < 10*time.Second; n++ {
		name := fmt.Sprint("s", n)
		w.east.write("manifests/"+name+".yaml", strings.ReplaceAll(manifestServe(pod(eastNumber)), "serve", name))
		changed := time.Now()
		w.west.hears("east", n)
		slowest, most = max(slowest, time.Since(changed)), max(most, w.west.rss())
	}
	s, err := w.west.status()
	w.must(err)
	logged = w.west.log.count() - logged
	t.Logf("RSS %d MiB before, at most %d; %d lines of log; the slowest change took %s; refused: %v", rss>>20, most>>20, logged, slowest, s.Refused)
	if grown := int64(most-rss) >> 20; grown > 64 {
		t.Errorf("the daemon grew by %d MiB", grown)
	}
	if logged > 100 {
		t.Errorf("%d lines of log", logged)
	}
	if len(s.Problems) > 8 {
		t.Errorf("%d problems", len(s.Problems))
	}
	for _, why := range []string{"not_tls", "crowded", "datagram", "datagram_key"} {
		if s.Refused[why] == 0 {
			t.Errorf("no attack was refused as %s, so it was none: %v", why, s.Refused)
		}
	}
	w.west.says("gossip port", "more than", "datagrams")
	w.west.balances(pod(eastNumber))
}

// TestReplayOfTheDead: what a daemon sent while it lived does not make it alive when it is gone, also
// after the daemon that hears the replay was restarted. The daemon itself is heard when it returns.
func TestReplayOfTheDead(t *testing.T) {
	if !inside(t) {
		return
	}
	w := newWorld(t, nil)
	replay := w.west.outsider("replay")
	replay.waitFor("captured 20")
	w.east.stop()
	w.west.stop()
	w.west.start()
	testutil.Eventually(t, patience, func() error {
		_, err := w.west.status()
		return err
	})
	sent := replay.replays()
	testutil.Eventually(t, patience, func() error {
		if w.west.alive("east") {
			t.Fatal("the replay made a daemon alive that is gone")
		}
		if n := replay.replays() - sent; n < 10 {
			return fmt.Errorf("%d replays", n)
		}
		return nil
	})
	w.east.start()
	testutil.Eventually(t, patience, func() error {
		if !w.west.alive("east") {
			return fmt.Errorf("the daemon that came back is not heard")
		}
		return nil
	})
}

// alive reports whether a daemon of a cluster is heard.
func (m *member) alive(cluster string) bool {
	s, err := m.status()
	if err != nil {
		return false
	}
	for _, c := range s.Clusters {
		if c.Name == cluster {
			return c.Alive > 0
		}
	}
	return false
}

// hears waits until a cluster is joined, with a number of exports.
func (m *member) hears(cluster string, exports int) {
	m.w.Helper()
	m.shows(cluster, fmt.Sprintf("alive with %d exports", exports), func(c api.Cluster) bool { return c.Alive > 0 && c.Exports == exports })
}

// shows waits until the status of a cluster is as wanted.
func (m *member) shows(cluster, want string, is func(api.Cluster) bool) {
	m.w.Helper()
	testutil.Eventually(m.w, patience, func() error {
		s, err := m.status()
		if err == nil && !slices.ContainsFunc(s.Clusters, func(c api.Cluster) bool { return c.Name == cluster && is(c) }) {
			err = fmt.Errorf("want %s %s: %+v", cluster, want, s.Clusters)
		}
		return err
	})
}

// rss returns the memory that a daemon has in use, in bytes.
func (m *member) rss() uint64 {
	m.w.Helper()
	text, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", m.pid))
	m.w.must(err)
	for line := range strings.Lines(string(text)) {
		var kib uint64
		if n, _ := fmt.Sscanf(line, "VmRSS: %d kB", &kib); n == 1 {
			return kib << 10
		}
	}
	m.w.Fatal("no VmRSS")
	return 0
}
