package cluster

import (
	"fmt"
	"slices"
	"strings"

	"strait.io/strait/internal/problem"
)

// Pair is how one cluster sees another: what From's daemons know of To.
type Pair struct {
	From, To string
	// OK is true if a daemon of From has had a handshake with a node of To; without a mesh, if it
	// hears one.
	OK bool
	// Why is what is missing and what to check.
	Why string
}

// Pairs evaluates the daemons' answers for every ordered pair of clusters.
func Pairs(ids []string, answers []Answer) []Pair {
	var out []Pair
	for _, from := range ids {
		for _, to := range ids {
			if from != to {
				out = append(out, pair(from, to, answers))
			}
		}
	}
	return out
}

// pair reports the best state that any daemon of one cluster has with the other, from never heard
// to a handshake.
func pair(from, to string, answers []Answer) Pair {
	p := Pair{From: from, To: to}
	asked, known, alive, tunnels := 0, 0, 0, []string{}
	meshOff := false
	for _, a := range answers {
		if a.Cluster != from {
			continue
		}
		asked++
		meshOff = meshOff || a.MeshOff
		for _, n := range a.Nodes {
			if n.Cluster != to {
				continue
			}
			known++
			if n.IsHeard() {
				alive++
			}
			switch {
			case a.MeshOff && n.IsHeard(), n.Tunnel != nil && !n.Tunnel.Handshake.IsZero():
				return Pair{From: from, To: to, OK: true}
			case n.Tunnel != nil:
				tunnels = append(tunnels, n.Tunnel.Underlay.String())
			}
		}
	}
	p.Why = why(from, to, asked, known, alive, tunnels, meshOff) + ownProblems(from, to, answers)
	return p
}

func why(from, to string, asked, known, alive int, tunnels []string, meshOff bool) string {
	slices.Sort(tunnels)
	tunnels = slices.Compact(tunnels)
	switch {
	case asked == 0:
		return fmt.Sprintf("no daemon of %s answers: kubectl -n strait-system get pods", from)
	case known == 0:
		return fmt.Sprintf("%s has not heard of %s: no node of it can be reached on the gossip port (TCP and UDP 7946); is there a route, does a firewall drop packets?", from, to)
	case alive == 0:
		return fmt.Sprintf("%s knows %s but does not hear it now: its nodes cannot be reached on the gossip port (TCP and UDP 7946)", from, to)
	case meshOff:
		return "no node is heard"
	case len(tunnels) == 0:
		return fmt.Sprintf("gossip works, but %s has no tunnel to %s; is mesh.mode wireguard in both?", from, to)
	}
	return fmt.Sprintf("gossip works, but there is no handshake with %s; is the UDP port open in both directions, is there a route?", strings.Join(tunnels, ", "))
}

// ownProblems lists the daemons' own problems that concern the other cluster, gossip or the tunnel.
func ownProblems(from, to string, answers []Answer) string {
	var out []string
	for _, a := range answers {
		for _, p := range a.Problems {
			if a.Cluster == from && !p.Warning && about(p, to) {
				out = append(out, p.Object+": "+p.Message)
			}
		}
	}
	slices.Sort(out)
	if out = slices.Compact(out); len(out) == 0 {
		return ""
	}
	return "; the daemons say: " + strings.Join(out[:min(len(out), 3)], "; ")
}

// about reports whether a Problem can keep two clusters apart: it is about the other cluster, about gossip
// or tunnels in general, or there is something twice.
func about(p problem.Problem, cluster string) bool {
	switch p.Code {
	case problem.ClusterIdentityRepeated, problem.NodeNameRepeated, problem.NodeKeyRepeated,
		problem.ClusterPrefixOverlap, problem.PrefixOverlap, problem.AddressTaken:
		return true
	}
	return p.Ref.Concerns(cluster) || p.Code.Area() == problem.Gossip || p.Code.Area() == problem.Tunnels || p.Ref.Kind == "wireguard"
}
