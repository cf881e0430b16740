// Package many runs sixty real daemons as five clusters of twelve machines, which find each other from seeds:
// do all hear all, on as few streams as docs/clusterset.md promises, and with how many bytes? Is what it
// promises kept when a relay, another machine or a whole cluster is gone?
//
// Inputs are straitd, built from the source, with keys and pins as in production; outputs are what the
// daemons say, what their meters and the routers between them count, and times, which are printed. Only
// very generous bounds are asserted of times. The machines are namespaces, and two processors have to do
// for all of them: so tunnels are off, as where pods are routable without strait, the maps are small, and
// the daemons collect garbage late, which takes 6 GB of memory.
package many

import (
	"context"
	"fmt"
	"maps"
	"os"
	"slices"
	"sync"
	"testing"
	"time"

	"strait.io/strait/internal/testutil"
)

// The bounds. The aims are 6 MB until each hears each, and 1.5 KB/s at rest for each daemon.
const (
	// formBytes is what the gossip of all may send until each hears each. It was 25 to 30 MB: in 2,000
	// connections that only ask who is there (8 MB), on 560 streams, of which 135 stay (7), in memberlist's
	// datagrams (7), and in its exchanges (6). Daemons that wait for a processor miss answers and ask again:
	// beside compilers it was up to 39 MB, and 50 MB with all at once.
	formBytes = 48e6
	// restBytes is what the gossip of each may send in a second at rest; it was 0.7 to 1.3 KB.
	restBytes = 1500
	// restFor is for how long the daemons are watched at rest: memberlist's exchanges come every 30 s.
	restFor = 10 * time.Second
	// apart is how long after a machine the next one gets its network.
	apart = 100 * time.Millisecond
)

func TestMain(m *testing.M) {
	code := m.Run()
	if testutil.InsideCgroup() == "" {
		if dir, err := programs(); err == nil {
			os.RemoveAll(dir)
		}
	}
	os.Exit(code)
}

func TestMany(t *testing.T) {
	testutil.NeedRoot(t)
	if testutil.InsideCgroup() == "" {
		dir, err := programs()
		if err != nil {
			t.Fatal(err)
		}
		t.Setenv(programsEnv, dir)
		watchers(t, 256)
	}
	if !testutil.Inside(t, 0) {
		return
	}
	f := newFleet(t)
	w := f.watch()
	f.boot()
	f.form(w)
	f.rest(w)
	f.linked(f.nodes)
	f.await("a change is seen by all", f.nodes, sees(f.change(f.nodes[17])))
	f.travelled(f.nodes[17], f.nodes)
	f.deaths()
	f.partition(f.clusters[4])
}

// boot starts all daemons on machines without a network, a few at a time: what they do when they start takes
// two processors many seconds, and would be no part of how they find each other.
func (f *fleet) boot() {
	f.Helper()
	began := time.Now()
	const atATime = 12
	room := make(chan struct{}, atATime)
	var starting sync.WaitGroup
	for _, n := range f.nodes {
		n.unplug()
		room <- struct{}{}
		n.start()
		starting.Go(func() {
			defer func() { <-room }()
			for deadline := time.Now().Add(patience); time.Now().Before(deadline); time.Sleep(50 * time.Millisecond) {
				ctx, cancel := context.WithTimeout(f.Context(), patience)
				_, err := n.api().Status(ctx)
				cancel()
				if err == nil {
					return
				}
			}
			f.Errorf("%s does not answer", n.origin())
		})
	}
	starting.Wait()
	if f.Failed() {
		f.FailNow()
	}
	f.Logf("the daemons have started after %.1f s", time.Since(began).Seconds())
}

// form plugs in one machine after the other, as after a power cut, and waits until each hears each.
func (f *fleet) form(w *wire) {
	f.Helper()
	w.take()
	udp, tcp := f.sent(f.nodes)
	before := udp + tcp
	for _, n := range f.nodes {
		n.plug()
		time.Sleep(apart)
	}
	f.await("all hear all, since the last machine has its network,", f.nodes, hearsAll)
	udp, tcp = f.sent(f.nodes)
	seen := w.take()
	f.Logf("%.1f MB were sent until then, %.1f of them in datagrams; seen on the wire: %.1f MB%s",
		(udp+tcp)/1e6, udp/1e6, float64(seen.gossip())/1e6, seen)
	if sent := udp + tcp - before; sent > formBytes {
		f.Errorf("%.0f bytes until all hear all, more than %.0f", sent, formBytes)
	} else if part := float64(seen.gossip()) / sent; part < 0.9 || part > 1.1 {
		f.Errorf("the daemons count %.0f bytes, and on the wire were %d", sent, seen.gossip())
	}
}

// rest waits until what the daemons send is within the bound.
func (f *fleet) rest(w *wire) {
	f.Helper()
	began := time.Now()
	testutil.Eventually(f, patience, func() error {
		w.take()
		udp0, tcp0 := f.sent(f.nodes)
		from := time.Now()
		time.Sleep(restFor)
		udp, tcp := f.sent(f.nodes)
		each := time.Since(from).Seconds() * all
		seen := w.take()
		f.Logf("at rest, after %.0f s: %.0f bytes/s of each daemon, %.0f of them in datagrams; seen on the wire in %v: %d bytes%s",
			time.Since(began).Seconds(), (udp+tcp-udp0-tcp0)/each, (udp-udp0)/each, restFor, seen.gossip(), seen)
		if rate := (udp + tcp - udp0 - tcp0) / each; rate > restBytes {
			return fmt.Errorf("%.0f bytes/s of each daemon, more than %d", rate, restBytes)
		}
		return nil
	})
}

// linked waits until the nodes have the streams that docs/clusterset.md says.
func (f *fleet) linked(nodes []*node) {
	f.Helper()
	var mu sync.Mutex
	counts := map[bool]map[int]int{true: {}, false: {}}
	f.await("all have the right streams", nodes, func(ctx context.Context, n *node) error {
		relay, streams, err := linked(ctx, n)
		if err == nil {
			mu.Lock()
			defer mu.Unlock()
			counts[relay][streams]++
		}
		return err
	})
	for _, relay := range []bool{true, false} {
		most := slices.Max(append(slices.Collect(maps.Keys(counts[relay])), 0))
		f.Logf("relays: %v, have at most %d streams: %v", relay, most, counts[relay])
	}
}
