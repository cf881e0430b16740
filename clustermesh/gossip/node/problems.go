package node

import (
	"fmt"
	"strings"
	"time"

	"strait.io/strait/clustermesh"
	"strait.io/strait/internal/problem"
)

// ProblemLife is how long a Problem is shown after it last occurred: longer than the longest pause
// between two attempts that can run into it.
const ProblemLife = 30 * time.Second

func wrongKeyProblem(addr string) clustermesh.Problem {
	return problem.Named("gossip with", addr).Problem(clustermesh.Problem{
		Code:    problem.GossipKeyDiffers,
		Message: "the gossip key differs from that of " + addr,
		Try:     "put the same key file on every node of the clusterset; daemons follow without a restart",
	})
}

func duplicateProblem(o clustermesh.Origin, addrs ...string) clustermesh.Problem {
	return o.Ref().Problem(clustermesh.Problem{
		Code:    problem.NodeNameRepeated,
		Message: "two daemons use this node name, at " + strings.Join(addrs, " and "),
		Try:     "give every node of the cluster a unique name, or stop one of the two daemons",
	})
}

const otherID = "give one of the two another id (ClusterProperty cluster.clusterset.k8s.io, or cluster in its configuration) and restart its daemons"

// passedOnProblem reports two clusters with the same name if records of the second one came from a
// third daemon, which has accepted them.
func passedOnProblem(c clustermesh.ClusterName, owner, uid string, by clustermesh.Origin) clustermesh.Problem {
	return problem.Cluster(string(c)).Problem(clustermesh.Problem{
		Code:    problem.ClusterIdentityRepeated,
		Message: fmt.Sprintf("two clusters have this id: one with UID %s, and one with UID %s, whose records %s forwards; those records are refused", owner, uid, by),
		Try:     otherID,
	})
}

// clusterProblem reports two clusters with the same name, as seen by one of them (own) or by a
// third.
func clusterProblem(c clustermesh.ClusterName, owner, uid, addr string, own bool) clustermesh.Problem {
	p := problem.Cluster(string(c)).Problem(clustermesh.Problem{
		Code:    problem.ClusterIdentityRepeated,
		Message: fmt.Sprintf("two clusters have this id: one with UID %s, and one with UID %s at %s, which is refused", owner, uid, addr),
		Try:     otherID,
	})
	if own {
		p.Message = fmt.Sprintf("two clusters have this id: this one, with UID %s, and one with UID %s at %s; they refuse each other", owner, uid, addr)
	}
	return p
}

func seedProblem(seed string, err error, alone bool) clustermesh.Problem {
	return problem.Named("gossip seed", seed).Problem(clustermesh.Problem{
		Code:    problem.SeedSilent,
		Message: fmt.Sprintf("does not answer: %v", err),
		Try:     "check the address, that straitd runs there, and that its gossip port is open for TCP and UDP",
		Warning: !alone,
	})
}

func udpProblem(peer string) clustermesh.Problem {
	return problem.Named("gossip with", peer).Problem(clustermesh.Problem{
		Code:    problem.UDPBlocked,
		Message: "answers over TCP but not over UDP",
		Try:     "open the gossip port for UDP too, in both directions",
		Warning: true,
	})
}
