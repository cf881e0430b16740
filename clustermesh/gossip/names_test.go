package gossip

import (
	"maps"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"strait.io/strait/clustermesh"
	"strait.io/strait/clustermesh/gossip/member"
	"strait.io/strait/clustermesh/gossip/statedir"
	"strait.io/strait/clustermesh/gossip/stream"
)

// withUID is a configuration of a daemon whose cluster has a UID, as in Kubernetes.
func withUID(c Config, uid string) Config {
	c.UID = uid
	return c
}

// TestNamesBelongToRoots: an attacker that has the gossip key and names another UID neither takes the name of a
// pinned cluster nor keeps its owner out: whether it comes first, the owner is away, or an earlier version
// saved what it said. Invented names are not kept.
func TestNamesBelongToRoots(t *testing.T) {
	t.Parallel()
	pins := pinned("west", "east")
	west := withUID(signing(config(origin("west", "n1")), pins), "uid-west")
	west.StateDir = t.TempDir()
	file := filepath.Join(west.StateDir, uidsFile)
	if err := os.WriteFile(file, []byte(`{"east":"uid-evil","invented":"`+strings.Repeat("x", 512<<10)+`"}`), 0o600); err != nil {
		t.Fatal(err)
	}
	dw := start(t, west)
	dw.Publish(placed(west.Self, 0, "1"))
	for _, o := range []clustermesh.Origin{origin("east", "ghost"), origin("west", "ghost"), origin("invented", "ghost")} {
		id := member.ID{Origin: o, Boot: 7}
		if _, err := (host{dw.Gossip}).Accept(stream.Peer{Peer: member.Peer{ID: id, UID: "uid-evil"}}, "192.0.2.66"); err != nil {
			t.Errorf("%s: %v", o, err)
		}
		if o.Cluster != west.Self.Cluster { // such a stranger's own daemon would refuse west
			start(t, withUID(config(o, west.Bind), "uid-evil")).say(3)
			eventually(t, "the stranger is a member", func() bool { return len(at(dw, o)) > 0 })
		}
	}
	east := withUID(signing(config(origin("east", "n1"), west.Bind), pins), "uid-east")
	de := start(t, east)
	de.Publish(placed(east.Self, 1, "2"))
	eventually(t, "they believe each other", func() bool {
		return dw.said(east.Self) == 2 && de.said(west.Self) == 1 && dw.contact(east.Self) == clustermesh.Alive
	})
	de.stop()
	eventually(t, "what was invented is gone from the disk", func() bool {
		last, err := statedir.LoadUIDs(west.StateDir)
		return err == nil && maps.Equal(last, map[clustermesh.ClusterName]string{"west": "uid-west"})
	})
	for range 2 { // its owner was silent for long, whatever that meant before
		dw.mu.Lock()
		dw.clusters.clusters = member.NewClusters("west", "uid-west", nil, time.Now().Add(-time.Hour))
		dw.clusters.SetPinned(true)
		dw.clusters.Admit("east", "uid-evil", time.Now())
		dw.mu.Unlock()
		dw.Repin(pins)
		if dw.said(east.Self) != 2 {
			t.Fatal("a stranger makes what a cluster said be dropped")
		}
	}
	de = start(t, east)
	de.Publish(placed(east.Self, 1, "4"))
	eventually(t, "its owner is heard again", func() bool { return dw.said(east.Self) == 4 })
}

// TestSavedNames: with pins, what the last life saved of names is not read, however it got there, and decides
// about no record; without pins, it is and does.
func TestSavedNames(t *testing.T) {
	for _, withPins := range []bool{true, false} {
		c := withUID(config(origin("west", "n1")), "uid-west")
		if withPins {
			c = withUID(signing(c, pinned("west", "east")), "uid-west")
		}
		c.StateDir = t.TempDir()
		saved := map[clustermesh.ClusterName]string{"west": "uid-west", "east": "uid-evil"}
		if err := statedir.SaveUIDs(c.StateDir, saved); err != nil {
			t.Fatal(err)
		}
		g, err := New(c)
		if err != nil {
			t.Fatal(err)
		}
		g.clusters.SetPinned(false)
		if read, _ := g.clusters.clusters.Belongs("east", "uid-east"); (read == "uid-evil") == withPins {
			t.Errorf("pins: %v; what was saved: %q", withPins, read)
		}
		// Pins can come later than what is remembered.
		g.clusters.clusters = member.NewClusters("west", "uid-west", saved, time.Now())
		g.clusters.SetPinned(withPins)
		if owner, ok := g.clusters.Belongs("east", "uid-east"); ok != withPins {
			t.Errorf("pins: %v; a record of the owner is admitted: %v, because of %q", withPins, ok, owner)
		}
	}
}
