package api_test

import (
	"fmt"
	"testing"

	"strait.io/strait/daemon/api"
)

// TestUnsigned: what is there and not signed would be lost with pins; and what another root signed, if that
// counts no more.
func TestUnsigned(t *testing.T) {
	l := api.NewMemberList(api.Viewpoint{}, []api.Member{
		{Cluster: "a", State: string(api.Here), Signed: true},
		{Cluster: "a", Node: "n1", State: api.Self, Signed: true, Root: "new"},
		{Cluster: "a", Node: "n2", State: api.Alive, Root: "old"},
		{Cluster: "a", Node: "n3", State: "silent", Root: "old"},
		{Cluster: "b", State: string(api.Joined), Root: "old"},
		{Cluster: "b", Node: "n1", State: api.Alive, Signed: true},
		{Cluster: "c", State: api.Unheard},
		{Cluster: "d", State: api.NotPinned},
	})
	if got := fmt.Sprint(l.Unsigned()); got != "[a/n2 b]" {
		t.Errorf("unsigned: %s", got)
	}
	for cluster, want := range map[string]string{"a": "[n2]", "b": "[b n1]"} {
		if got := fmt.Sprint(l.OfOtherRoot(cluster, "new")); got != want {
			t.Errorf("%s: of another root: %s, want %s", cluster, got, want)
		}
	}
}
