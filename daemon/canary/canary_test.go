package canary

import (
	"math"
	"slices"
	"testing"
	"time"

	"strait.io/strait/clustermesh"
)

var start = time.Unix(1_700_000_000, 0)

// TestSender: a leader sends one each Period and at once when it becomes the leader, also when its
// clock is set back; others send none.
func TestSender(t *testing.T) {
	var s Sender
	for _, step := range []struct {
		leads bool
		at    time.Duration // since start, by the node's clock
		sent  time.Duration // since start; -1 for none
		in    time.Duration
	}{
		{false, 0, -1, 0},
		{true, 1 * time.Second, time.Second, Period},
		{true, 11 * time.Second, time.Second, Period - 10*time.Second},
		{true, 31 * time.Second, 31 * time.Second, Period},
		{true, -time.Hour, -time.Hour, Period},
		{false, -time.Hour, -1, 0},
		{true, -time.Hour + time.Second, -time.Hour + time.Second, Period},
	} {
		want := int64(0)
		if step.sent != -1 {
			want = start.Add(step.sent).UnixMilli()
		}
		if canary, in := s.Next(step.leads, start.Add(step.at)); canary != want || in != step.in {
			t.Errorf("%+v: canary %d, next in %s, want %d", step, canary, in, want)
		}
	}
}

// TestArrivals: a canary counts once, on other clusters, with the difference of the clocks, and
// only if that and its predecessor are known.
func TestArrivals(t *testing.T) {
	var a Arrivals
	var records clustermesh.ByOrigin[clustermesh.Record]
	east, west, own := clustermesh.Origin{Cluster: "east", Node: "n1"}, clustermesh.Origin{Cluster: "west", Node: "n1"}, clustermesh.Origin{Cluster: "own", Node: "n2"}
	ahead := map[clustermesh.Origin]time.Duration{east: 0, own: 0}
	at := func(d time.Duration) int64 { return start.Add(d).UnixMilli() }
	for _, step := range []struct {
		name   string
		from   clustermesh.Origin
		canary int64
		ahead  time.Duration
		now    time.Duration
		want   []Arrival
	}{
		{"the first", east, at(0), 0, time.Hour, nil},
		{"the next", east, at(30 * time.Second), 0, 30*time.Second + 80*time.Millisecond, []Arrival{{"east", 80 * time.Millisecond}}},
		{"another change of the record", east, at(30 * time.Second), 0, 40 * time.Second, nil},
		{"a clock that is ahead", east, at(time.Hour + time.Minute), time.Hour, time.Minute + 100*time.Millisecond, []Arrival{{"east", 100 * time.Millisecond}}},
		{"a clock that is behind", east, at(time.Hour + 2*time.Minute), -time.Hour, 2*time.Hour + 2*time.Minute + time.Second, []Arrival{{"east", time.Second}}},
		{"less than nothing", east, at(3 * time.Hour), time.Millisecond, 3*time.Hour - 2*time.Millisecond, []Arrival{{"east", 0}}},
		{"no canary any more", east, 0, 0, 3 * time.Hour, nil},
		{"the first again", east, at(4 * time.Hour), 0, 5 * time.Hour, nil},
		{"an earlier one", east, at(3 * time.Hour), 0, 3 * time.Hour, nil},
		{"a lie", east, math.MaxInt64, 0, 3 * time.Hour, nil},
		{"a negative lie", east, math.MinInt64, 0, 3 * time.Hour, nil},
		{"the own cluster", own, at(0), 0, 0, nil},
		{"the own cluster, again", own, at(time.Minute), 0, time.Minute, nil},
		{"an unknown clock", west, at(0), 0, 0, nil},
		{"an unknown clock, again", west, at(time.Minute), 0, time.Minute, nil},
	} {
		records = records.With(step.from, clustermesh.Record{Content: clustermesh.Content{Node: &clustermesh.Node{Canary: step.canary}}})
		got := a.Note(records, "own", func(o clustermesh.Origin) (time.Duration, bool) {
			_, known := ahead[o]
			return step.ahead, known
		}, start.Add(step.now))
		if !slices.Equal(got, step.want) {
			t.Errorf("%s: %v, want %v", step.name, got, step.want)
		}
	}
}
