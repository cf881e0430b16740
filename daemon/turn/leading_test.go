package turn_test

import (
	"testing"
	"time"

	"strait.io/strait/clustermesh"
	"strait.io/strait/daemon/turn"
)

// TestCanLead: only a daemon of the cluster that is heard and has what it takes counts.
func TestCanLead(t *testing.T) {
	for name, c := range map[string]struct {
		contact  clustermesh.Contact
		cluster  clustermesh.ClusterName
		follower bool
		can      bool
	}{
		"heard, and can":        {clustermesh.Alive, "west", false, true},
		"a follower":            {clustermesh.Alive, "west", true, false},
		"of another cluster":    {clustermesh.Alive, "east", false, false},
		"one that is not heard": {clustermesh.Quiet, "west", false, false},
	} {
		o := clustermesh.Origin{Cluster: c.cluster, Node: "n2"}
		s := clustermesh.State{
			Records:  clustermesh.NewByOrigin(map[clustermesh.Origin]clustermesh.Record{o: {Content: clustermesh.Content{Node: &clustermesh.Node{Follower: c.follower}}}}),
			Contacts: clustermesh.NewByOrigin(map[clustermesh.Origin]clustermesh.Contact{o: c.contact}),
		}
		if got := turn.CanLead("west", s); got != c.can {
			t.Errorf("%s: %v", name, got)
		}
	}
	if turn.CanLead("west", clustermesh.State{Contacts: clustermesh.NewByOrigin(map[clustermesh.Origin]clustermesh.Contact{{Cluster: "west", Node: "n2"}: clustermesh.Alive})}) {
		t.Error("a node without a record can lead")
	}
}

// TestLeaderless: that no daemon can lead counts after a while, and the while begins again.
func TestLeaderless(t *testing.T) {
	start := time.Date(2026, 11, 26, 12, 0, 0, 0, time.UTC)
	var l turn.Leaderless
	for _, c := range []struct {
		at    time.Duration
		can   bool
		since time.Duration // -1: not yet
		again time.Duration
	}{
		{0, true, -1, 0},
		{time.Second, false, -1, time.Minute},
		{31 * time.Second, false, -1, 30 * time.Second},
		{61 * time.Second, false, time.Second, 0},
		{time.Hour, false, time.Second, 0},
		{2 * time.Hour, true, -1, 0},
		{3 * time.Hour, false, -1, time.Minute},
	} {
		var want time.Time
		if c.since >= 0 {
			want = start.Add(c.since)
		}
		if since, again := l.Note(c.can, start.Add(c.at)); !since.Equal(want) || again != c.again {
			t.Errorf("at %s: since %v, again in %s; want %v and %s", c.at, since, again, want, c.again)
		}
	}
}
