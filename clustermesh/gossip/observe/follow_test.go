package observe

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"strait.io/strait/clustermesh"
	"strait.io/strait/clustermesh/gossip/member"
)

// TestReported: a member of another cluster to which no stream is wanted needs to prove nothing while
// relays hear its cluster. That says nothing of one that is no member, or of one's own cluster.
func TestReported(t *testing.T) {
	c, now := NewContacts(node("a", "n1")), time.Unix(1000, 0)
	far, near := node("b", "n1"), node("a", "n2")
	heard := Sight{Heard: []clustermesh.ClusterName{"b"}}
	is := func(what string, o clustermesh.Origin, want clustermesh.Contact) {
		t.Helper()
		if got := c.Contact(o); got != want {
			t.Errorf("%s: %s is %s, want %s", what, o, got, want)
		}
	}
	for _, o := range []clustermesh.Origin{far, near} {
		c.Join(member.ID{Origin: o, Boot: 5}, where, now)
	}
	is("no relay reports it", far, clustermesh.Held)
	c.Believe(heard)
	is("its cluster is heard", far, clustermesh.Reported)
	is("its cluster is heard", near, clustermesh.Held)
	now = now.Add(10 * time.Second)
	if asked := c.Unmet(now); fmt.Sprint(asked) != "[a/n2]" {
		t.Errorf("asked who they are: %v", asked)
	}
	c.Follow(map[clustermesh.Origin]bool{far: true}, now)
	is("a stream is wanted", far, clustermesh.Held)
	c.Met(member.ID{Origin: far, Boot: 5}, now)
	is("it has proven that it is there", far, clustermesh.Alive)
	c.Leave(member.ID{Origin: far, Boot: 5}, now)
	is("it is no member", far, clustermesh.Held)
	c.Follow(map[clustermesh.Origin]bool{far: false}, now)
	is("no stream is wanted, and it is no member", far, clustermesh.Held)
	c.Join(member.ID{Origin: far, Boot: 5}, where, now)
	is("it is a member again", far, clustermesh.Reported)
	c.Believe(Sight{})
	is("its cluster is not heard", far, clustermesh.Held)
}

// TestSees: a node sees other clusters by streams that carry something, and nodes of its own whose
// streams have ended or carry nothing. Those are doubtful. A relay's word has others probe them.
func TestSees(t *testing.T) {
	c, now := NewContacts(node("a", "n1")), time.Unix(1000, 0)
	far, near := member.ID{Origin: node("b", "n1"), Boot: 5}, member.ID{Origin: node("a", "n2"), Boot: 5}
	for _, m := range []member.ID{far, near} {
		c.Join(m, where, now)
		c.Follow(map[clustermesh.Origin]bool{m.Origin: true}, now)
		c.Stream(m, +1, now)
	}
	for _, step := range []struct {
		what     string
		do       func()
		sees     string
		doubtful int
	}{
		{"both have streams", func() {}, "{[b] []}", 0},
		{"nothing comes for two seconds", func() { now = now.Add(2 * time.Second) }, "{[b] [n2]}", 2},
		{"nothing comes for four", func() { now = now.Add(2 * time.Second) }, "{[] [n2]}", 2},
		{"both are heard", func() { c.Frame(far, now); c.Frame(near, now) }, "{[b] []}", 0},
		{"both streams have ended", func() { c.Stream(far, -1, now); c.Stream(near, -1, now); now = now.Add(time.Second) }, "{[] [n2]}", 2},
		{"none is wanted", func() {
			c.Follow(map[clustermesh.Origin]bool{far.Origin: false, near.Origin: false}, now)
		}, "{[] []}", 0},
	} {
		step.do()
		if got := fmt.Sprint(c.Sees(now)); got != step.sees {
			t.Errorf("%s: it sees %s, want %s", step.what, got, step.sees)
		}
		if got := len(c.Doubtful(now)); got != step.doubtful {
			t.Errorf("%s: %d are doubtful", step.what, got)
		}
	}
	known := records{}.With(near.Origin, clustermesh.Record{Origin: near.Origin, Content: clustermesh.Content{Node: &clustermesh.Node{Name: "n2"}}})
	if due := c.Due(known, now); len(due) > 0 {
		t.Errorf("probed without a reason: %v", due)
	}
	c.Believe(Sight{Silent: []clustermesh.NodeName{"n2"}})
	if due := c.Due(known, now); !slices.Equal(due, []clustermesh.Origin{near.Origin}) {
		t.Errorf("probed because a relay does not hear it: %v", due)
	}
	c.Probed(near.Origin, Answered, now, now, rand.New(rand.NewPCG(1, 1)))
	if got := c.Contact(near.Origin); got != clustermesh.Alive {
		t.Errorf("its machine answers, and it is %s", got)
	}
}

// TestLinks: what relays report is passed on once, and forgotten with the stream to them.
func TestLinks(t *testing.T) {
	var l Links
	r1, r2 := node("a", "n2"), node("a", "n3")
	streams := map[clustermesh.Origin]bool{r1: true, r2: true}
	update := func(heard ...clustermesh.ClusterName) bool {
		return l.Update(Sight{Heard: heard}, func(o clustermesh.Origin) bool { return streams[o] })
	}
	if !update("b") || update("b") {
		t.Error("a change is reported not at all, or twice")
	}
	l.Report(r1, Report{Own: Sight{[]clustermesh.ClusterName{"d", "c", "c", "not a name"}, []clustermesh.NodeName{"n9"}}, Via: Sight{Heard: []clustermesh.ClusterName{"e"}}})
	l.Report(r2, Report{Own: Sight{Heard: make([]clustermesh.ClusterName, 10_000)}})
	if !update("b") {
		t.Error("reports are no change")
	}
	if got := fmt.Sprint(l.All()); got != "{[b c d e] [n9]}" {
		t.Errorf("in all it sees %s", got)
	}
	if got := fmt.Sprint(l.Own()); got != "{{[b] []} {[c d] [n9]}}" {
		t.Errorf("it reports %s", got)
	}
	if delete(streams, r1); !update("b") || fmt.Sprint(l.All()) != "{[b] []}" {
		t.Errorf("after the end of the stream it sees %s", fmt.Sprint(l.All()))
	}
}
