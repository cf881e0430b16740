package api

import (
	"testing"
	"time"
)

// TestLinesOf: lines of several nodes are in the order of their times, and those of one node stay
// as they were.
func TestLinesOf(t *testing.T) {
	at := func(n int) time.Time { return time.Unix(int64(n), 0) }
	one := NewLogList(Viewpoint{Cluster: "a", Node: "n1"}, []LogLine{{Time: at(1), Message: "one"}, {Time: at(5), Message: "two"}, {Time: at(5), Message: "three"}, {Time: at(9), Message: "four"}}, 7)
	other := NewLogList(Viewpoint{Cluster: "b", Node: "n1"}, []LogLine{{Time: at(5), Message: "other"}}, 0)
	got := ""
	for _, l := range LinesOf([]*LogList{one, other}) {
		got += l.Node + " " + l.Message + "; "
	}
	if want := "a/n1 one; a/n1 two; a/n1 three; b/n1 other; a/n1 four; "; got != want {
		t.Errorf("%s, want %s", got, want)
	}
}
