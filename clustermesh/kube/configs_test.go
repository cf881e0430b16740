package kube

import (
	"strings"
	"testing"

	"strait.io/strait/clustermesh"
)

// TestFollowConfigs: the objects of config clusters count like the source's own, from the next read on; before the
// first word of them, nothing is read.
func TestFollowConfigs(t *testing.T) {
	settled := func(follows bool) *Source {
		s := New(Config{Cluster: "west", FollowsConfigs: follows, Client: Client{contact: &contact{}}})
		for _, w := range s.watches {
			w.st.synced = true
		}
		s.read()
		return s
	}
	configs := func(names ...string) []clustermesh.ClusterConfig {
		c := clustermesh.ClusterConfig{Cluster: "east"}
		for _, n := range names {
			c.Objects = append(c.Objects, clustermesh.ConfigObject{Kind: "MultiClusterService.networking.gke.io", Name: clustermesh.ServiceName{Namespace: "shop", Name: n},
				Spec: `{"template":{"spec":{"selector":{"a":"b"},"ports":[{"port":1}]}}}`})
		}
		return []clustermesh.ClusterConfig{c}
	}
	if _, synced := settled(false).Local(); !synced {
		t.Error("a cluster that follows none waits for some")
	}
	s := settled(true)
	if _, synced := s.Local(); synced {
		t.Error("it counts as read before config clusters were heard")
	}
	for _, c := range []struct {
		what     string
		configs  []clustermesh.ClusterConfig
		followed bool // at once
		want     int
	}{
		{"the first word", nil, false, 0}, {"the same", nil, true, 0},
		{"two objects", configs("a", "b"), false, 2}, {"the same two", configs("a", "b"), true, 2},
		// A cluster that changes its configuration all the time cannot make the leader wait.
		{"another two", configs("a", "c"), true, 2}, {"a third", configs("a", "b", "c"), true, 3}, {"none", configs(), true, 0},
		{"one more cluster", append(configs("a"), clustermesh.ClusterConfig{Cluster: "south"}), false, 1}, {"no cluster", nil, false, 0},
	} {
		if got := s.FollowConfigs(c.configs); got != c.followed {
			t.Errorf("%s: followed %v", c.what, got)
		}
		s.read()
		if _, synced := s.Local(); !synced || !s.FollowConfigs(c.configs) || len(s.GKE().Services) != c.want {
			t.Errorf("%s: read %v, services %v", c.what, synced, s.GKE().Services)
		}
		select {
		case <-s.Changed():
		default:
			if !strings.HasPrefix(c.what, "the same") {
				t.Errorf("%s: Changed is silent", c.what)
			}
		}
	}
}
