package redteam

import (
	"fmt"
	"net/netip"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"strait.io/strait/clustermesh"
	"strait.io/strait/clustermesh/replica"
	"strait.io/strait/internal/testutil"
)

// maxWithheld is how long a change may take, in the middle, whose shortest way is withheld. It is 0.12 s on
// two processors; without the hint of the second home, it would be many seconds.
const maxWithheld = time.Second

// TestRelayWithholds: the first home of a node, to which the only node of another cluster has a stream
// too, passes nothing on. All changes arrive by the other ways, in both directions.
func TestRelayWithholds(t *testing.T) {
	if !insideAlone(t) {
		return
	}
	c := newCrowd(t)
	took := c.changes(10)
	t.Log("inside the cluster:", took)
	if p := percentile(took, 50); p > maxWithheld {
		t.Errorf("changes take %s", p)
	}
	if p := slices.Min(took); p < 45*time.Millisecond { // a hint waits longer
		t.Errorf("a change takes %s, so the first home of n1 is another one: choose other names", p)
	}
	far := []string{manifestServes(pod(eastNumber)), manifestServes(pod(eastNumber), moved)}
	took = nil
	for n := range 6 { // the first one adds the Service too
		began := time.Now()
		c.east.write("manifests/far.yaml", strings.ReplaceAll(far[1-n%2], "serve", "far"))
		c.arrives(c.west, moved, n%2 == 0)
		took = append(took, time.Since(began))
	}
	t.Log("from the other cluster:", took)
	if p := percentile(took, 50); p > 2*maxWithheld { // the file must be seen too
		t.Errorf("changes of the other cluster take %s", p)
	}
}

// TestRelayReorders: the same one passes on what it hears a second later, the newest first, and all of it
// twice. What changed arrives in time, and nothing goes back to what it was.
func TestRelayReorders(t *testing.T) {
	if !insideAlone(t) {
		return
	}
	c := newCrowd(t)
	passed := c.passesLate(time.Second)
	const writer = 4
	at := func(n int) netip.Addr {
		return netip.AddrFrom4([4]byte{10, westNumber, crowdNumber + writer, 10 + byte(n)})
	}
	var took []time.Duration
	var ends []func()
	for n := range 10 {
		began := time.Now()
		c.nodes[writer].Publish(c.content(writer, at(n)))
		c.arrives(c.west, at(n), true)
		took = append(took, time.Since(began))
		if n > 0 {
			ends = append(ends, c.west.never(at(n-1)))
		}
		time.Sleep(100 * time.Millisecond)
	}
	testutil.Eventually(t, patience, func() error {
		if n := passed(); n < 20 {
			return fmt.Errorf("%d records of the writer were passed on late", n)
		}
		return nil
	})
	time.Sleep(time.Second)
	for _, end := range ends {
		end()
	}
	t.Log(took)
	if p := percentile(took, 50); p > maxWithheld {
		t.Errorf("changes take %s", p)
	}
}

// passesLate has the hostile relay pass on after a time what it got until then, the newest first. It
// returns how many messages have been passed on.
func (c *crowd) passesLate(late time.Duration) (passed func() int) {
	c.Helper()
	var mu sync.Mutex
	var waiting [][]byte
	count := 0
	c.mu.Lock()
	c.passes = func(_ clustermesh.Origin, message []byte) {
		m, err := replica.Decode(message)
		if s, is := m.(*replica.Snapshot); err == nil && is && len(s.Entries) > 0 {
			mu.Lock()
			defer mu.Unlock()
			waiting = append(waiting, message, message)
		}
	}
	c.mu.Unlock()
	c.Cleanup(during(late, func(int) {
		mu.Lock()
		defer mu.Unlock()
		slices.Reverse(waiting)
		for _, m := range waiting {
			for _, o := range c.others {
				c.k.Send(o, m)
			}
		}
		count += len(waiting)
		waiting = nil
	}))
	return func() int {
		mu.Lock()
		defer mu.Unlock()
		return count
	}
}

// TestRelayClaims: the same one reports all nodes of its cluster as silent, and clusters as heard that do not
// exist or have ended. No node is withdrawn, no cluster is invented, and n1 notices that the other cluster is
// gone.
func TestRelayClaims(t *testing.T) {
	if !insideAlone(t) {
		return
	}
	c := newCrowd(t)
	claims := &replica.Links{Heard: []clustermesh.ClusterName{"east", "ghost"}, Via: []clustermesh.ClusterName{"ghost2"}}
	for _, o := range c.all {
		claims.Silent = append(claims.Silent, o.Node)
	}
	claims.SilentVia = claims.Silent
	defer during(50*time.Millisecond, func(int) {
		for _, o := range c.others {
			c.k.says(o, claims)
		}
	})()
	end := c.west.always(crowdPod(otherRelay))
	whole := func(alive int) {
		t.Helper()
		s, err := c.west.status()
		c.must(err)
		for _, of := range s.Clusters {
			if of.Name == "west" && (of.Alive != alive || of.Dead > 0) || of.Name != "west" && of.Name != "east" {
				t.Errorf("n1 says of cluster %s: %d alive, %d dead, want %d alive", of.Name, of.Alive, of.Dead, alive)
			}
		}
	}
	c.west.hearsNodes("west", crowdSize+1)
	for range 15 {
		whole(crowdSize + 1)
		time.Sleep(100 * time.Millisecond)
	}
	c.east.stop()
	c.west.hearsNodes("east", 0)
	whole(crowdSize + 1)
	end()
}
