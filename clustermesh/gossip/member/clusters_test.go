package member

import (
	"fmt"
	"testing"
	"time"

	"strait.io/strait/clustermesh"
)

// TestNamesAreBounded: who invents names fills no memory, and those that were heard lately stay.
func TestNamesAreBounded(t *testing.T) {
	now := time.Unix(1000, 0)
	c := NewClusters("a", "ua", nil, now)
	for i := range 4 * maxNames {
		c.Admit(clustermesh.ClusterName(fmt.Sprint("n", i)), "u", now)
	}
	if len(c.owners) > maxNames {
		t.Errorf("%d names", len(c.owners))
	}
	if _, ok := c.Admit("n0", "other", now); ok {
		t.Error("the first name is forgotten")
	}
	if c.Admit("late", "u", now.Add(uidLife)); c.owners["late"].uid != "u" || c.owners["a"].uid != "ua" {
		t.Error("there is no room once the others are silent")
	}
}

func TestUIDs(t *testing.T) {
	start := time.Unix(1000, 0)
	type step struct {
		cluster clustermesh.ClusterName
		uid     string
		after   time.Duration
		want    string // the UID of the owner that it is refused for; empty if it is let in
	}
	for _, tc := range []struct {
		name, own string
		last      map[clustermesh.ClusterName]string
		steps     []step
	}{
		{"the first keeps the name", "ua", nil, []step{{"b", "u1", 0, ""}, {"b", "u2", time.Second, "u1"}, {"b", "u1", 2 * time.Second, ""}}},
		{"our own is ours forever", "ua", nil, []step{{"a", "u2", time.Hour, "ua"}, {"a", "ua", time.Hour, ""}}},
		{"no UID matches", "ua", nil, []step{{"a", "", 0, ""}, {"b", "u1", 0, ""}, {"b", "", 0, ""}, {"b", "u2", 0, "u1"}}},
		{"standalone matches", "", nil, []step{{"a", "u1", 0, ""}, {"a", "u2", 0, ""}}},
		{"a rebuilt cluster", "ua", nil, []step{{"b", "u1", 0, ""}, {"b", "u2", uidLife + 1, ""}, {"b", "u1", uidLife + 2, "u2"}}},
		{"heard again and again", "ua", nil, []step{{"b", "u1", 0, ""}, {"b", "u1", uidLife - 1, ""}, {"b", "u2", uidLife + 1, "u1"}}},
		{"across a restart", "ua", map[clustermesh.ClusterName]string{"b": "u1", "a": "old"}, []step{{"b", "u2", time.Second, "u1"}, {"a", "ua", 0, ""}}},
	} {
		t.Run(tc.name, func(t *testing.T) {
			u := NewClusters("a", tc.own, tc.last, start)
			for i, s := range tc.steps {
				if got, ok := u.Admit(s.cluster, s.uid, start.Add(s.after)); got != s.want || ok != (s.want == "") {
					t.Errorf("step %d, %+v: %q, %v", i, s, got, ok)
				}
			}
		})
	}
}
