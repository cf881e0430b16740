package api

import (
	"fmt"
	"testing"
	"time"
)

func TestLogs(t *testing.T) {
	at := func(n int) time.Time { return time.Unix(int64(n), 0) }
	one := NewLogList(Viewpoint{Cluster: "a", Node: "n1"}, []LogLine{{at(1), "INFO", "one", ""}, {at(5), "DEBUG+1", "two", ""}, {at(5), "WARN", "three", ""}, {at(9), "ERROR", "four", ""}}, 7)
	other := NewLogList(Viewpoint{Cluster: "b", Node: "n1"}, []LogLine{{at(5), "INFO", "other", ""}}, 0)
	show := func(q LogQuery) (out string) {
		for _, l := range LinesOf([]*LogList{one.Keep(q), other.Keep(q)}) {
			out += fmt.Sprintf("%d %s %s; ", l.Time.Unix(), l.Node, l.Message)
		}
		return out
	}
	for want, q := range map[string]LogQuery{
		"1 a/n1 one; 5 a/n1 two; 5 a/n1 three; 5 b/n1 other; 9 a/n1 four; ": {},
		"5 a/n1 three; 5 b/n1 other; 9 a/n1 four; ":                         {Since: at(2), Level: "INFO"},
		"9 a/n1 four; ": {Level: "ERROR"},
	} {
		if got := show(q); got != want {
			t.Errorf("%+v: %s, want %s", q, got, want)
		}
	}
	if len(one.Items) != 4 {
		t.Errorf("a query changed the list: %+v", one.Items)
	}
}
