package node

import (
	"fmt"
	"testing"
	"time"

	"strait.io/strait/clustermesh"
	"strait.io/strait/clustermesh/gossip/member"
	"strait.io/strait/clustermesh/replica"
	"strait.io/strait/internal/l4"
)

func TestLeaderEpochGrows(t *testing.T) {
	var l election
	now := time.UnixMilli(1000)
	l.update(true, now)
	first := l.since
	l.update(false, now)
	l.update(true, now.Add(-time.Hour)) // the clock went back
	if first != 1000 || l.since <= first {
		t.Errorf("epochs %d, %d", first, l.since)
	}
}

// TestElect: the lowest live name leads, after a grace if others are known, and gives way to a
// lower one. A node that others cannot believe, or whose record is missing where that matters, is
// not waited for.
func TestElect(t *testing.T) {
	lower := origin("west", "n1")
	for name, c := range map[string]struct {
		pins, record, follower, alive bool
		after                         time.Duration
		leads                         bool
	}{
		"alone":                                    {leads: true},
		"another is known, at first":               {record: true},
		"another is known, and is not heard":       {record: true, after: startGrace, leads: true},
		"a lower name is alive":                    {record: true, alive: true, after: time.Minute},
		"it has no record yet":                     {alive: true, after: time.Minute},
		"it has no record yet, and there are pins": {pins: true, alive: true, after: time.Minute, leads: true},
		"the same, at first":                       {pins: true, alive: true},
		"it follows":                               {record: true, follower: true, alive: true, after: time.Minute, leads: true},
	} {
		cfg, saved := config(origin("west", "n2"), at), Saved{}
		if c.pins {
			cfg = signing(cfg, pinned("west"))
		}
		if c.record {
			content := placed(lower, 0, "1")
			content.Node.Follower = c.follower
			saved.Records = []replica.Entry{entry(t, lower, content, at)}
		}
		n := New(cfg, saved, at)
		n.SetRunning(true, at)
		now := at.Add(c.after)
		if c.alive {
			id := member.ID{Origin: lower, Boot: 7}
			n.contacts.Join(id, n.cfg.Bind, now)
			n.contacts.Met(id, now)
		}
		if n.Beat(nil, nil, now); n.Leader() != c.leads {
			t.Errorf("%s: it leads: %v", name, n.Leader())
		}
		if n.SetRunning(false, now); n.Leader() {
			t.Errorf("%s: it leads although it has ended", name)
		}
	}
}

// TestClusterRecordWaits: after a large record took long to write, the next change of it waits, but
// not longer than clusterWait.
func TestClusterRecordWaits(t *testing.T) {
	cfg := config(origin("west", "n1"), at)
	cfg.Measure = func(work func()) time.Duration { work(); return time.Hour }
	n := New(cfg, Saved{}, at)
	n.SetRunning(true, at)
	n.Beat(nil, nil, at)
	large := func(port uint16) (c clustermesh.Content) {
		for i := range 5000 {
			c.Exports = append(c.Exports, clustermesh.Export{
				Service: clustermesh.ServiceName{Namespace: "default", Name: fmt.Sprintf("service-%04d", i)}, Type: clustermesh.ClusterSetIP,
				Ports: []clustermesh.ServicePort{{Name: "http", Proto: l4.TCP, Port: port}}, Created: 1,
			})
		}
		return c
	}
	if !n.PublishCluster(large(80), at) {
		t.Fatal("the first change waits")
	}
	now := at.Add(clusterWait - time.Second)
	if n.PublishCluster(large(81), now) {
		t.Error("the second change does not wait")
	}
	now = at.Add(clusterWait)
	n.Beat(nil, nil, now)
	if r, _ := n.Record(clustermesh.Origin{Cluster: "west"}); len(r.Content.Exports) == 0 || r.Content.Exports[0].Ports[0].Port != 81 {
		t.Errorf("the second change waits longer than %s", clusterWait)
	}
}
