package api

import (
	"fmt"
	"testing"
	"time"
)

// TestTimelineGroups: what several nodes note of one thing, and what follows from it, is one event.
func TestTimelineGroups(t *testing.T) {
	at := time.Date(2026, 5, 1, 14, 2, 7, 0, time.UTC)
	item := func(node string, seq uint64, after time.Duration, subject, text string, withdrawn int) NodeItem {
		i := NodeItem{node, HistoryItem{Seq: seq, Time: at.Add(after), Causes: []Cause{{CauseContact, subject, text}}}}
		if withdrawn > 0 {
			i.Effects = []Effect{{Service: "shop/cart", From: "a", To: fmt.Sprint("b", seq), Clusters: []ClusterEffect{{Cluster: "w", Withdrawn: withdrawn}}}}
		}
		return i
	}
	events := Timeline([]NodeItem{
		item("e/n1", 1, 0, "node w/n4", "alive → silent", 30),
		item("e/n2", 7, time.Second, "node w/n4", "alive → silent", 40),
		item("e/n1", 2, 4*time.Second, "node w/n4", "is dead", 2),
		item("e/n1", 3, 5*time.Second, "shop/cart", "1 endpoint came in e", 0),
		item("e/n1", 4, 10*time.Minute, "node w/n4", "silent → alive", 0),
	})
	if len(events) != 3 {
		t.Fatalf("%d events", len(events))
	}
	e := events[0]
	if got := fmt.Sprint(e.Subject, e.Texts, e.Nodes, e.Withdrawn, e.To.Sub(e.From)); got != "node w/n4[alive → silent is dead] [e/n1 e/n2] 40 4s" {
		t.Error(got)
	}
	if got := e.Effect(); got != "40 endpoints withdrawn, shop/cart: a → b2" {
		t.Error(got)
	}
	if got := events[1].Effect(); got != "" {
		t.Errorf("an event without effect: %q", got)
	}
}

// TestTimelineTimes: what nodes see at different seconds is one text, also where it is not the main cause.
func TestTimelineTimes(t *testing.T) {
	at := time.Date(2026, 5, 1, 14, 2, 7, 0, time.UTC)
	seen := func(node string, second int) NodeItem {
		text := fmt.Sprintf("carries nothing since 14:02:%02d UTC", second)
		return NodeItem{node, HistoryItem{Seq: 1, Time: at.Add(time.Duration(second) * time.Second), Causes: []Cause{{CauseTunnel, "tunnel to w/n4", text},
			{CauseProblem, "STR5101", "tunnel to w/n4: carries packets in one direction only, since " + text[22:] + ": the node's arrive here"}}}}
	}
	events := Timeline([]NodeItem{seen("e/n1", 1), seen("e/n2", 3), seen("e/n1", 4)})
	if len(events) != 1 || fmt.Sprint(events[0].Texts) != "[carries nothing since 14:02:01 UTC]" || len(events[0].Also) != 1 {
		t.Errorf("%d events, the first %+v", len(events), events[0])
	}
}

// TestTimelineCounts: endpoints are counted from before an event to after it, not turn by turn.
func TestTimelineCounts(t *testing.T) {
	at := time.Date(2026, 5, 1, 14, 2, 7, 0, time.UTC)
	for name, c := range map[string]struct {
		turns []string // CLUSTER+ADDED-WITHDRAWN of shop/cart; the last is where connections go
		want  string
	}{
		"withdrawn":                     {[]string{"w+0-3 e"}, "3 endpoints withdrawn, shop/cart: w → e"},
		"exchanged in one turn":         {[]string{"w+1-1 w"}, "1 endpoint withdrawn, 1 added, shop/cart: still w"},
		"back":                          {[]string{"w+0-3 e", "w+3-0 w"}, "as before in the end, shop/cart: still w"},
		"flaps":                         {[]string{"w+0-3 e", "w+3-0 w", "w+0-3 e"}, "3 endpoints withdrawn, shop/cart: w → e"},
		"another cluster, for a moment": {[]string{"w+0-3 e", "e+2-0 e", "e+0-2 e"}, "3 endpoints withdrawn, shop/cart: w → e"},
		"others of two clusters":        {[]string{"w+0-3 e", "e+2-0 e"}, "3 endpoints withdrawn, 2 added, shop/cart: w → e"},
		"more than before":              {[]string{"w+0-1 w", "w+3-0 w"}, "2 endpoints added, shop/cart: still w"},
		"withdrawn after more had come": {[]string{"w+2-0 w", "w+0-5 e"}, "3 endpoints withdrawn, shop/cart: w → e"},
	} {
		var items []NodeItem
		from := "w"
		for i, turn := range c.turns {
			var x ClusterEffect
			var to string
			x.Cluster = turn[:1]
			if _, err := fmt.Sscanf(turn[1:], "+%d-%d %s", &x.Added, &x.Withdrawn, &to); err != nil {
				t.Fatal(err)
			}
			items = append(items, NodeItem{"e/n1", HistoryItem{Seq: uint64(i), Time: at.Add(time.Duration(i) * time.Second),
				Causes: []Cause{{CauseEndpoint, "shop/cart", "changed"}}, Effects: []Effect{{Service: "shop/cart", From: from, To: to, Clusters: []ClusterEffect{x}}}}})
			from = to
		}
		events := Timeline(items)
		if len(events) != 1 || events[0].Effect() != c.want {
			t.Errorf("%s: %d events, %q, want %q", name, len(events), events[0].Effect(), c.want)
		}
	}
}

// TestAbout: names are those of services, nodes and clusters with their nodes.
func TestAbout(t *testing.T) {
	i := HistoryItem{Causes: []Cause{{CauseTunnel, "tunnel to w/n4", "carries nothing"}, {CauseExport, "cluster e", "exports shop/pay"}, {CauseEndpoint, "web/front", "1 endpoint came"}},
		Effects: []Effect{{Service: "shop/cart"}}}
	for name, want := range map[string]bool{"shop/cart": true, "shop/pay": true, "web/front": true, "w/n4": true, "w": true, "e": true, "n4": false, "web": false, "shop": false, "w/n": false} {
		if i.About(name) != want {
			t.Errorf("%s: %t", name, !want)
		}
	}
}
