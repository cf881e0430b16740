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
