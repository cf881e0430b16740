package turn_test

import (
	"fmt"
	"net/netip"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"strait.io/strait/clustermesh"
	"strait.io/strait/daemon/plan"
	"strait.io/strait/daemon/turn"
)

var (
	self  = plan.Self{Cluster: "a", Node: "n1"}
	serve = clustermesh.ServiceName{Namespace: "default", Name: "serve"}
	given = []clustermesh.Allocation{{Service: serve, IP: netip.MustParseAddr("241.1.2.3")}}
)

// spoken is a turn of a node that leads its cluster, after all inputs are complete.
func spoken() turn.Inputs {
	return turn.Inputs{
		Self: self, Sourced: true, Synced: true, Leads: true,
		Local:  clustermesh.Local{Exports: []clustermesh.Export{{Service: serve}}},
		Record: &clustermesh.Content{Node: &clustermesh.Node{Name: "n1"}},
		State: clustermesh.State{Records: clustermesh.NewByOrigin(map[clustermesh.Origin]clustermesh.Record{
			{Cluster: "a"}: {Content: clustermesh.Content{Allocations: given}},
		})},
	}
}

// walk takes a turn to its end as the daemon does, with a plan that never changes, and returns the kinds of
// its steps and the last caution.
func walk(t *testing.T, in turn.Inputs, r plan.Result) (kinds string, caution turn.Caution, shown turn.Show) {
	t.Helper()
	var out []string
	for steps := turn.Decide(in); len(steps) > 0; {
		if len(out) > 20 {
			t.Fatalf("the turn does not end: %v", out)
		}
		step := steps[0]
		steps = steps[1:]
		out = append(out, strings.TrimPrefix(fmt.Sprintf("%T", step), "turn."))
		switch s := step.(type) {
		case turn.Look:
			if len(steps) > 0 {
				t.Fatalf("steps after Look, which decides again: %v", steps)
			}
			in.Plan = &r
			steps = turn.Decide(in)
		case turn.PublishCluster:
			in.PublishedCluster = true
		case turn.Apply:
			caution = s.Caution
		case turn.Handshake:
			if s.Wait != in.First {
				t.Errorf("waits for handshakes: %v", s.Wait)
			}
		case turn.Show:
			shown = s
		}
	}
	return strings.Join(out, " "), caution, shown
}

func TestOrder(t *testing.T) {
	for _, c := range []struct {
		name   string
		change func(*turn.Inputs)
		want   string
	}{
		{"the leader", func(*turn.Inputs) {}, "Publish Look PublishCluster Look Apply Handshake Show Write"},
		{"another node", func(in *turn.Inputs) { in.Leads = false }, "Publish Look Apply Handshake Show"},
		{"nothing is published before the tunnels stand", func(in *turn.Inputs) { in.First = true }, "Look Apply Handshake Publish Show Write Again"},
		{"no tunnel yet", func(in *turn.Inputs) { in.NoTunnels, in.Age = true, time.Second }, "Look PublishCluster Look Apply Handshake Show Write"},
		{"no tunnel yet, in the first turn", func(in *turn.Inputs) { in.First, in.NoTunnels = true, true }, "Look Apply Handshake Show Write Again"},
		{"no tunnel for long", func(in *turn.Inputs) { in.NoTunnels, in.Age = true, time.Minute }, "Publish Look PublishCluster Look Apply Handshake Show Write"},
		{"the first turn of another node", func(in *turn.Inputs) { in.First, in.Leads = true, false }, "Look Apply Handshake Publish Show Again"},
		{"the first turn before the source has spoken", func(in *turn.Inputs) { in.First, in.Sourced, in.Record = true, false, nil }, "Look Apply Handshake Show Again"},
		{"unknown is not empty: the source has not spoken", func(in *turn.Inputs) { in.Sourced, in.Record = false, nil }, "Look Apply Handshake Show"},
		{"unknown is not empty: gossip has not spoken", func(in *turn.Inputs) { in.Synced = false }, "Publish Look Apply Handshake Show"},
		{"unknown is not empty: a config cluster's configuration is not read yet", func(in *turn.Inputs) { in.Behind = true }, "Publish Look Apply Handshake Show"},
		{"unknown is not empty: the machine cannot be read", func(in *turn.Inputs) { in.Record = nil }, "Look PublishCluster Look Apply Handshake Show Write"},
	} {
		in := spoken()
		c.change(&in)
		if got, _, _ := walk(t, in, plan.Result{Allocations: given}); got != c.want {
			t.Errorf("%s: %s, want %s", c.name, got, c.want)
		}
	}
}

func TestCaution(t *testing.T) {
	none := plan.Result{}
	for _, c := range []struct {
		name    string
		change  func(*turn.Inputs)
		plan    plan.Result
		want    turn.Caution
		waiting string // a part of each line, in order
		names   bool
	}{
		{"all have spoken", func(*turn.Inputs) {}, plan.Result{Allocations: given}, turn.Exact, "", true},
		{"gossip has not", func(in *turn.Inputs) { in.Synced, in.Missing = false, "a first exchange" }, plan.Result{Allocations: given}, turn.GrowOnly, "gossip: a first exchange", false},
		{"the source has not", func(in *turn.Inputs) { in.Sourced = false }, plan.Result{Allocations: given}, turn.NoPrune, "source:", false},
		{"neither has", func(in *turn.Inputs) { in.Sourced, in.Synced = false, false }, none, turn.GrowOnly, "source:,gossip:", false},
		{"the leader gave out other addresses", func(*turn.Inputs) {}, none, turn.NoPrune, "leader:", true},
		{"the cluster has never had a leader", func(in *turn.Inputs) { in.State = clustermesh.State{} }, none, turn.NoPrune, "leader:", true},
		{"what the plan wants means nothing before the source speaks", func(in *turn.Inputs) { in.Sourced = false }, none, turn.NoPrune, "source:", false},
		{"derived Services give out the addresses", func(in *turn.Inputs) { in.Derived, in.Local.Allocations = true, given }, none, turn.Exact, "", true},
		{"derived Services are not there yet", func(in *turn.Inputs) { in.Derived = true }, plan.Result{Allocations: given}, turn.NoPrune, "leader:", true},
	} {
		in := spoken()
		c.change(&in)
		_, caution, shown := walk(t, in, c.plan)
		if caution != c.want {
			t.Errorf("%s: %s, want %s", c.name, caution, c.want)
		}
		want := slices.DeleteFunc(strings.Split(c.waiting, ","), func(s string) bool { return s == "" })
		if !slices.EqualFunc(shown.Waiting, want, strings.Contains) || shown.Names != c.names {
			t.Errorf("%s: waiting for %q, names %v", c.name, shown.Waiting, shown.Names)
		}
	}
}

// What a plan lacks is gone only once this life of the daemon has the records of others, and the plan has
// what the node itself published in it.
func TestSettled(t *testing.T) {
	for _, c := range []struct{ first, fresh, want bool }{
		{false, true, true}, {true, true, false}, {false, false, false}, {true, false, false},
	} {
		in := spoken()
		in.First, in.Fresh, in.Plan, in.PublishedCluster = c.first, c.fresh, &plan.Result{Allocations: given}, true
		apply, is := turn.Decide(in)[0].(turn.Apply)
		if !is || apply.Settled != c.want {
			t.Errorf("first %v, fresh %v: %+v, want settled %v", c.first, c.fresh, turn.Decide(in)[0], c.want)
		}
	}
}

// The results of policies in a cluster's record are those of the last leader until this one has its own.
func TestTellsResults(t *testing.T) {
	before, now := []clustermesh.PolicyResult{{Policy: "before"}}, []clustermesh.PolicyResult{{Policy: "now"}}
	for _, c := range []struct {
		results []clustermesh.PolicyResult
		want    []clustermesh.PolicyResult
	}{{nil, before}, {now, now}, {now[:0], nil}} {
		in := spoken()
		in.Results, in.Plan = c.results, &plan.Result{Allocations: given}
		in.State.Records = in.State.Records.With(clustermesh.Origin{Cluster: "a"}, clustermesh.Record{Content: clustermesh.Content{Results: before}})
		if publish, is := turn.Decide(in)[0].(turn.PublishCluster); !is || !reflect.DeepEqual(publish.Content.Results, c.want) {
			t.Errorf("%v: %+v", c.results, turn.Decide(in)[0])
		}
	}
}

// The cluster's record has the content of the source, with the addresses that the plan or the source allocated.
func TestAllocationsInRecord(t *testing.T) {
	other := []clustermesh.Allocation{{Service: serve, IP: netip.MustParseAddr("10.96.0.9")}}
	for derived, want := range map[bool]netip.Addr{false: given[0].IP, true: other[0].IP} {
		in := spoken()
		in.Derived, in.Local.Allocations, in.Plan = derived, other, &plan.Result{Allocations: given}
		publish, is := turn.Decide(in)[0].(turn.PublishCluster)
		if !is || len(publish.Content.Exports) != 1 || len(publish.Content.Allocations) != 1 || publish.Content.Allocations[0].IP != want {
			t.Errorf("derived %v: %+v", derived, turn.Decide(in)[0])
		}
	}
}
