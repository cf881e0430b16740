package health

import (
	"fmt"
	"slices"
	"time"

	"strait.io/strait/clustermesh"
	"strait.io/strait/internal/problem"
)

const (
	// unheardAfter is how long a daemon must not have been heard to be a Problem: longer than its restart
	// takes, and than gossip needs to agree that a machine is off.
	unheardAfter = 7 * time.Second
	// maxUnheard is how many nodes of one kind are Problems of their own.
	maxUnheard = 16
)

// Hearing is what this node hears of others.
type Hearing struct {
	Self clustermesh.Origin
	// Heard is when each other daemon was heard last; those that were not heard are missing.
	Heard map[clustermesh.Origin]time.Time
	// Began is when this daemon began to listen.
	Began time.Time
}

// Problems reports the clusters of which no daemon is heard, and in others the nodes whose daemon is not,
// and how soon there may be more to report; 0 if that is not known. They are errors if this node hears
// nothing at all, or if nothing of a cluster answers; otherwise all else works.
func (h Hearing) Problems(s clustermesh.State, now time.Time) (out []problem.Problem, again time.Duration) {
	alone, best, last := true, map[clustermesh.ClusterName]clustermesh.Contact{}, map[clustermesh.ClusterName]time.Time{}
	for r := range s.Nodes() {
		o := r.Origin
		if o == h.Self {
			continue
		}
		c := s.Contacts.Get(o)
		alone = alone && !c.Heard()
		if c.Better(best[o.Cluster]) {
			best[o.Cluster] = c
		}
		last[o.Cluster] = later(last[o.Cluster], h.last(o))
	}
	due := func(heard time.Time) bool {
		wait := unheardAfter - now.Sub(heard)
		if wait > 0 && (again == 0 || wait < again) {
			again = wait
		}
		return wait <= 0
	}
	told := map[clustermesh.ClusterName]bool{}
	var nodes []problem.Problem
	for r := range s.Nodes() {
		o, c := r.Origin, s.Contacts.Get(r.Origin)
		switch {
		case o == h.Self || c.Heard():
		case o.Cluster != h.Self.Cluster && !best[o.Cluster].Heard():
			if !told[o.Cluster] && due(last[o.Cluster]) {
				out = append(out, unheardCluster(o.Cluster, best[o.Cluster], last[o.Cluster], alone))
			}
			told[o.Cluster] = true
		case due(h.last(o)):
			nodes = append(nodes, unheardNode(o, c, s.Dead(o), h.last(o), alone))
		}
	}
	return append(out, few(nodes)...), again
}

// last is when a node was heard last, or could have been.
func (h Hearing) last(o clustermesh.Origin) time.Time { return later(h.Heard[o], h.Began) }

func later(a, b time.Time) time.Time {
	if a.After(b) {
		return a
	}
	return b
}

func unheardCluster(name clustermesh.ClusterName, best clustermesh.Contact, last time.Time, alone bool) problem.Problem {
	p := problem.Problem{
		Code: problem.ClusterHeld,
		Message: "nothing of it has been heard since " + clock(last) +
			": what it last published is kept, and its endpoints are used if no others are left",
		Try: "look at the network between the clusters: the gossip port must be open for TCP and UDP, in both directions; " +
			"for a cluster that is gone: strait clusterset disconnect",
	}
	if best == clustermesh.Quiet {
		p.Code, p.Warning = problem.ClusterQuiet, !alone
		p.Message = "no daemon of it has been heard since " + clock(last) + ", though a machine answers: its endpoints stay as they were"
		p.Try = "start straitd there; if it runs, open the gossip port between the clusters for TCP and UDP, in both directions"
	}
	return problem.Cluster(string(name)).Problem(p)
}

func unheardNode(o clustermesh.Origin, c clustermesh.Contact, dead bool, last time.Time, alone bool) problem.Problem {
	p := problem.Problem{Code: problem.NodeHeld, Warning: !alone}
	switch since := clock(last); {
	case dead:
		p.Code = problem.NodeDead
		p.Message = "its machine has not been heard since " + since + ", and its cluster agrees: its endpoints get no connections"
		p.Try = "start the machine, or look at its network; if it is gone for good, delete its Node"
	case c == clustermesh.Quiet:
		p.Code = problem.NodeQuiet
		p.Message = "its daemon has not been heard since " + since + ", though the machine answers: its endpoints stay as they were"
		p.Try = "start straitd there, and look at its log"
	default:
		p.Message = "nothing of it has been heard here since " + since + ", and its cluster does not say that it is dead: its endpoints are kept"
		p.Try = "look at the network between the two nodes: the gossip port must be open for TCP and UDP, in both directions"
	}
	return o.Ref().Problem(p)
}

// few replaces the nodes of a kind by one Problem if there are many.
func few(nodes []problem.Problem) (out []problem.Problem) {
	for _, code := range []problem.Code{problem.NodeDead, problem.NodeQuiet, problem.NodeHeld} {
		of := slices.DeleteFunc(slices.Clone(nodes), func(p problem.Problem) bool { return p.Code != code })
		if len(of) > maxUnheard {
			first := of[0]
			all := first
			all.Ref, all.Object = problem.Ref{}, "nodes"
			all.Message = fmt.Sprintf("%d of them are like %s: %s", len(of), first.Object, first.Message)
			of = []problem.Problem{all}
		}
		out = append(out, of...)
	}
	return out
}
