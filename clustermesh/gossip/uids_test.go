package gossip

import (
	"net/netip"
	"testing"
	"time"

	"strait.io/strait/clustermesh"
	"strait.io/strait/clustermesh/gossip/member"
)

// TestTwoClustersOfOneName: a third cluster refuses the second to come, and that one learns why.
func TestTwoClustersOfOneName(t *testing.T) {
	t.Parallel()
	withUID := func(c Config, uid string) Config {
		c.UID = uid
		return c
	}
	a := withUID(config(origin("a", "n1")), "uid-a")
	a.StateDir = t.TempDir()
	b := withUID(config(origin("b", "n1"), a.Bind), "uid-b")
	da, db := start(t, a), start(t, b)
	da.say(1)
	db.say(2)
	eventually(t, "a and b know each other", func() bool { return da.said(b.Self) == 2 && db.said(a.Self) == 1 })

	twin := withUID(config(origin("b", "n9"), a.Bind), "uid-twin")
	dt := start(t, twin)
	dt.say(3)
	eventually(t, "the third says so", func() bool {
		return da.hasProblem("cluster b", "uid-b", "uid-twin", twin.Bind.String(), "refused", "another id")
	})
	eventually(t, "the newcomer says so", func() bool {
		return dt.hasProblem("cluster b", "this one, with UID uid-twin", "uid-b", b.Bind.String(), "another id")
	})
	for range 30 {
		time.Sleep(50 * time.Millisecond)
		if da.said(twin.Self) != -1 || db.said(twin.Self) != -1 || da.contact(twin.Self) != clustermesh.Held {
			t.Fatal("records of the second cluster were taken in")
		}
	}
	dt.stop()

	// A restart does not forget whose the name is, even if the other comes first.
	da.stop()
	db.stop()
	da = start(t, a)
	late := withUID(config(origin("b", "n9"), a.Bind), "uid-twin")
	start(t, late).say(4)
	eventually(t, "the restarted third says so", func() bool { return da.hasProblem("cluster b", "uid-b", "uid-twin") })
	if da.said(late.Self) != -1 {
		t.Error("records of the second cluster were taken in after a restart")
	}
}

// TestTwinsRecordsPassedOn: two that each know another cluster by the same name refuse what the other holds of it.
func TestTwinsRecordsPassedOn(t *testing.T) {
	t.Parallel()
	withUID := func(uid string, c Config) Config {
		c.UID = uid
		return c
	}
	exports := func(d *daemon, n string) {
		eventually(t, n+" leads", d.Leader)
		d.PublishCluster(clustermesh.Content{Exports: []clustermesh.Export{{Service: clustermesh.ServiceName{Namespace: "default", Name: n},
			Type: clustermesh.ClusterSetIP, Ports: []clustermesh.ServicePort{{Port: 80, Proto: 6}}}}})
	}
	exported := func(d *daemon) string {
		for _, e := range d.State().Records.Get(clustermesh.Origin{Cluster: "b"}).Content.Exports {
			return e.Service.Name
		}
		return ""
	}
	a := withUID("uid-a", config(origin("a", "n1")))
	a.StateDir = t.TempDir()
	c := withUID("uid-c", config(origin("c", "n1")))
	b, twin := withUID("uid-b", config(origin("b", "n1"), a.Bind)), withUID("uid-twin", config(origin("b", "n9"), c.Bind))
	da, dc, db, dt := start(t, a), start(t, c), start(t, b), start(t, twin)
	for i, d := range []*daemon{da, dc, db, dt} {
		d.say(i)
	}
	exports(db, "of-b")
	exports(dt, "of-twin")
	eventually(t, "each knows its own", func() bool {
		return da.said(b.Self) == 2 && exported(da) == "of-b" && dc.said(twin.Self) == 3 && exported(dc) == "of-twin"
	})
	if err := dc.SetSeeds(Seeds{Listed: []string{a.Bind.String()}}); err != nil {
		t.Fatal(err)
	}
	eventually(t, "they meet", func() bool { return da.said(c.Self) == 1 && dc.said(a.Self) == 0 })
	eventually(t, "both say so", func() bool {
		return da.hasProblem("cluster b", "uid-b", "uid-twin", "c/n1 forwards", "another id") && dc.hasProblem("cluster b", "uid-twin", "uid-b", "forwards")
	})
	for range 30 {
		time.Sleep(50 * time.Millisecond)
		if da.said(twin.Self) != -1 || dc.said(b.Self) != -1 || exported(da) != "of-b" || exported(dc) != "of-twin" {
			t.Fatalf("records were taken in: %d, %d, %s, %s", da.said(twin.Self), dc.said(b.Self), exported(da), exported(dc))
		}
	}

	// What was known of b goes when its name comes to belong to the other.
	db.stop()
	da.clusters.mu.Lock()
	da.clusters.clusters = member.NewClusters("a", "uid-a", map[clustermesh.ClusterName]string{"b": "uid-twin", "c": "uid-c"}, time.Now())
	da.clusters.mu.Unlock()
	eventually(t, "a follows", func() bool { return da.said(b.Self) == -1 && da.said(twin.Self) == 3 && exported(da) == "of-twin" })
}

// TestTwinClusterAtSeed: a daemon whose only seed is of the other cluster finds out at the handshake.
func TestTwinClusterAtSeed(t *testing.T) {
	t.Parallel()
	one := config(origin("b", "n1"))
	one.UID = "uid-1"
	two := config(origin("b", "n2"), one.Bind)
	two.UID = "uid-2"
	d1, d2 := start(t, one), start(t, two)
	d1.say(1)
	d2.say(2)
	eventually(t, "both say so", func() bool {
		return d1.hasProblem("uid-1", "uid-2") && d2.hasProblem("uid-1", "uid-2", one.Bind.String())
	})
	if d1.said(two.Self) != -1 || d2.said(one.Self) != -1 {
		t.Error("records crossed")
	}
}

// TestSeedsChange: seeds that come later count, and hints are no Problem.
func TestSeedsChange(t *testing.T) {
	t.Parallel()
	c1, c2 := config(origin("a", "n1")), config(origin("b", "n1"))
	nobody := testAddr()
	d1, d2 := start(t, c1), start(t, c2)
	d1.say(1)
	d2.say(2)
	if err := d1.SetSeeds(Seeds{Hints: []netip.AddrPort{nobody, c1.Bind}}); err != nil {
		t.Fatal(err)
	}
	if ok, waiting := d1.Synced(); ok || waiting == "" {
		t.Error("a hint is not waited for at all")
	}
	eventually(t, "a hint is not waited for long", func() bool { ok, _ := d1.Synced(); return ok })
	if p := d1.Problems(); len(p) > 0 {
		t.Errorf("a hint that does not answer: %v", p)
	}
	if err := d1.SetSeeds(Seeds{Listed: []string{"nonsense", c2.Bind.String()}}); err == nil {
		t.Error("a seed that is none is no error")
	}
	eventually(t, "the new seed is joined", func() bool { return d1.said(c2.Self) == 2 })
}
