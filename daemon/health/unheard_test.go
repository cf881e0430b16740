package health

import (
	"fmt"
	"testing"
	"time"

	"strait.io/strait/clustermesh"
	"strait.io/strait/internal/problem"
)

// TestUnheard: of a cluster of which nothing is heard, there is one Problem; otherwise one of each node. None is
// too early, and they are errors only where this node hears nothing, or nothing answers.
func TestUnheard(t *testing.T) {
	now := time.Date(2026, 11, 29, 12, 0, 0, 0, time.UTC)
	self := clustermesh.Origin{Cluster: "a", Node: "n1"}
	type contacts map[string]clustermesh.Contact
	for _, c := range []struct {
		name     string
		contacts contacts // of others
		ago      time.Duration
		dead     string // a node that two others claim silent
		want     string
		again    time.Duration
	}{
		{"all are heard", contacts{"a/n2": clustermesh.Alive, "b/n1": clustermesh.Alive}, time.Hour, "", "", 0},
		{"too early", contacts{"b/n1": clustermesh.Quiet}, time.Second, "", "", unheardAfter - time.Second},
		{"the only other one", contacts{"b/n1": clustermesh.Quiet}, time.Hour, "", "error STR5302 cluster b ", 0},
		{"a daemon of a cluster of one", contacts{"a/n2": clustermesh.Alive, "b/n1": clustermesh.Quiet}, time.Hour, "", "warning STR5302 cluster b ", 0},
		{"a cluster that is cut off", contacts{"a/n2": clustermesh.Alive, "b/n1": clustermesh.Silent, "b/n2": clustermesh.Held}, time.Hour, "", "error STR5301 cluster b ", 0},
		{"a machine and no daemon", contacts{"a/n2": clustermesh.Alive, "b/n1": clustermesh.Silent, "b/n2": clustermesh.Quiet}, time.Hour, "", "warning STR5302 cluster b ", 0},
		{"one of several", contacts{"b/n1": clustermesh.Silent, "b/n2": clustermesh.Alive, "b/n3": clustermesh.Quiet}, time.Hour, "",
			"warning STR5304 node b/n3 warning STR5305 node b/n1 ", 0},
		{"a dead one", contacts{"b/n1": clustermesh.Silent, "b/n2": clustermesh.Alive, "b/n3": clustermesh.Alive}, time.Hour, "b/n1", "warning STR5303 node b/n1 ", 0},
		{"one of the own cluster", contacts{"a/n2": clustermesh.Quiet, "b/n1": clustermesh.Alive}, time.Hour, "", "warning STR5304 node a/n2 ", 0},
		{"alone in the own cluster", contacts{"a/n2": clustermesh.Quiet}, time.Hour, "", "error STR5304 node a/n2 ", 0},
	} {
		h, s := Hearing{Self: self, Heard: map[clustermesh.Origin]time.Time{}, Began: now.Add(-24 * time.Hour)}, state(self, c.contacts, c.dead)
		for o := range s.Records.All() {
			h.Heard[o] = now.Add(-c.ago)
		}
		problems, again := h.Problems(s, now)
		got := ""
		for _, p := range problems {
			got += fmt.Sprintf("%s %s %s ", p.Severity(), p.Code, p.Object)
			if p.Try == "" || p.Message == "" {
				t.Errorf("%s: %+v", c.name, p)
			}
		}
		if got != c.want || again != c.again {
			t.Errorf("%s: %q again in %s, want %q in %s", c.name, got, again, c.want, c.again)
		}
	}
}

// TestUnheardSinceStart: a daemon that has just started has not heard anybody yet, which is no Problem for a while.
func TestUnheardSinceStart(t *testing.T) {
	now := time.Now()
	self := clustermesh.Origin{Cluster: "a", Node: "n1"}
	s := state(self, map[string]clustermesh.Contact{"b/n1": clustermesh.Held}, "")
	if got, again := (Hearing{Self: self, Began: now.Add(-time.Second)}).Problems(s, now); len(got) > 0 || again != unheardAfter-time.Second {
		t.Errorf("%v again in %s", got, again)
	}
	if got, _ := (Hearing{Self: self, Began: now.Add(-time.Minute)}).Problems(s, now); len(got) != 1 || got[0].Code != problem.ClusterHeld {
		t.Errorf("%v", got)
	}
}

// TestManyUnheard: of many nodes, there is one Problem.
func TestManyUnheard(t *testing.T) {
	self := clustermesh.Origin{Cluster: "a", Node: "n1"}
	all := map[string]clustermesh.Contact{"b/alive": clustermesh.Alive}
	for i := range maxUnheard + 1 {
		all[fmt.Sprintf("b/n%d", i)] = clustermesh.Quiet
	}
	got, _ := Hearing{Self: self}.Problems(state(self, all, ""), time.Now())
	if len(got) != 1 || got[0].Code != problem.NodeQuiet || got[0].Object != "nodes" {
		t.Errorf("%v", got)
	}
}

// state has a record of each node. A dead one is claimed silent by all others.
func state(self clustermesh.Origin, contacts map[string]clustermesh.Contact, dead string) clustermesh.State {
	records, heard := map[clustermesh.Origin]clustermesh.Record{}, map[clustermesh.Origin]clustermesh.Contact{self: clustermesh.Alive}
	origin := func(name string) clustermesh.Origin {
		for i := range name {
			if name[i] == '/' {
				return clustermesh.Origin{Cluster: clustermesh.ClusterName(name[:i]), Node: clustermesh.NodeName(name[i+1:])}
			}
		}
		return clustermesh.Origin{}
	}
	for name, c := range contacts {
		heard[origin(name)] = c
	}
	for o := range heard {
		content := clustermesh.Content{Node: &clustermesh.Node{}}
		if dead != "" && o != origin(dead) {
			content.Silent = []clustermesh.Silence{{Origin: origin(dead)}}
		}
		records[o] = clustermesh.Record{Origin: o, Content: content}
	}
	return clustermesh.State{Records: clustermesh.NewByOrigin(records), Contacts: clustermesh.NewByOrigin(heard)}
}
