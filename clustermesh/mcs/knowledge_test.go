package mcs_test

import (
	"reflect"
	"testing"

	"strait.io/strait/clustermesh"
	"strait.io/strait/clustermesh/mcs"
)

func TestKnowledge(t *testing.T) {
	record := func(c clustermesh.ClusterName, n clustermesh.NodeName) clustermesh.Origin {
		return clustermesh.Origin{Cluster: c, Node: n}
	}
	s := clustermesh.State{
		Records: clustermesh.NewByOrigin(map[clustermesh.Origin]clustermesh.Record{
			record("own", ""): {}, record("own", "n1"): {},
			record("heard", ""): {}, record("heard", "n1"): {}, record("heard", "n2"): {},
			record("leaderless", "n1"): {},
			record("away", ""):         {}, record("away", "n1"): {},
			record("daemonless", ""): {}, record("daemonless", "n1"): {},
		}),
		Contacts: clustermesh.NewByOrigin(map[clustermesh.Origin]clustermesh.Contact{
			record("heard", "n1"): clustermesh.Silent, record("heard", "n2"): clustermesh.Alive,
			record("leaderless", "n1"): clustermesh.Alive, record("daemonless", "n1"): clustermesh.Quiet,
			record("stranger", "n1"): clustermesh.Alive,
		}),
	}
	want := map[clustermesh.ClusterName]mcs.Knowledge{
		"own": mcs.Current, "heard": mcs.Current, "leaderless": mcs.Unknown, "away": mcs.Held, "daemonless": mcs.Held, "stranger": mcs.Unknown,
	}
	if got := mcs.KnowledgeOf("own", s); !reflect.DeepEqual(got, want) {
		t.Errorf("got %v, want %v", got, want)
	}
	// The own cluster has not published yet: nothing is complete.
	if got := mcs.KnowledgeOf("own", clustermesh.State{}); got["own"] != mcs.Unknown {
		t.Errorf("the own cluster before it published: %v", got)
	}
}
