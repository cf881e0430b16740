package table

import (
	"fmt"
	"strings"
	"testing"
	"time"
)

// TestMerge: equal items are one, whatever moves; those that differ follow each other.
func TestMerge(t *testing.T) {
	type item struct{ name, state, age string }
	list := Table[item]{Name: func(i item) string { return i.name }, Columns: []Column[item]{
		{Name: "STATE", Cell: text(func(i item) string { return i.state })},
		{Name: "AGE", Moving: true, Cell: func(i item, _ time.Time) string { return i.age }},
	}}
	merged := list.Merge([][]item{
		{{"a", "up", "1s"}, {"b", "up", "1s"}},
		{{"b", "down", "2s"}, {"c", "up", "2s"}, {"a", "up", "2s"}},
		{{"b", "down", "3s"}},
	}, Form{})
	var got []string
	for _, m := range merged {
		got = append(got, fmt.Sprintf("%s %s %v", m.Item.name, m.Item.state, m.Lists))
	}
	if want := "a up [0 1]; b up [0]; b down [1 2]; c up [1]"; strings.Join(got, "; ") != want {
		t.Errorf("got %s, want %s", strings.Join(got, "; "), want)
	}
}
