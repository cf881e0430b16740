package trust

import (
	"errors"
	"fmt"
	"maps"
	"time"

	"strait.io/strait/clustermesh"
	"strait.io/strait/clustermesh/authority"
	"strait.io/strait/clustermesh/replica"
	"strait.io/strait/internal/problem"
)

// refusal is a reason to refuse records of a cluster.
type refusal struct {
	cluster clustermesh.ClusterName
	reason  error
}

// example is one record that was refused. People see one for each refusal, and the same one for
// exampleLife.
type example struct {
	record, by clustermesh.Origin
	since      time.Time
}

const exampleLife = 5 * time.Minute

// Refuse counts a refused record, and returns the Problem, which is the same for all records of a
// cluster that are refused for one reason.
func (s *verifier) Refuse(o clustermesh.Origin, by replica.Peer, cause error, now time.Time) clustermesh.Problem {
	if by == (replica.Peer{}) { // it was admitted before
		by = o
	}
	for _, known := range reasons {
		if !errors.Is(cause, known.reason) {
			continue
		}
		s.refused[known.name]++
		p := known.problem
		key := refusal{o.Cluster, known.reason}
		p.Object = "cluster " + string(o.Cluster)
		if known.reason == errClusters { // one Problem for all that are invented
			key.cluster, p.Object = "", "clusterset"
		}
		x, shown := s.refusals[key]
		if !shown || now.Sub(x.since) > exampleLife {
			x = example{o, by, now}
			s.forget(now)
			if len(s.refusals) < maxRefusals {
				s.refusals[key] = x
			}
		}
		p.Message = fmt.Sprintf("%s: %v, so it is ignored (for example the record of %s, received from %s)", p.Message, known.reason, x.record, x.by)
		return p
	}
	s.refused["unreadable"]++
	return o.RecordRef().Problem(clustermesh.Problem{
		Code:    problem.RecordRejected,
		Message: fmt.Sprintf("ignored, what it published before stays in force: %v (received from %s)", cause, by),
		Try:     "upgrade the older daemon if the versions differ; otherwise an attacker with the gossip key forges records",
	})
}

// maxRefusals bounds the examples: anyone who has the gossip key can invent clusters.
const maxRefusals = 256

// forget drops examples that are not shown any more.
func (s *verifier) forget(now time.Time) {
	maps.DeleteFunc(s.refusals, func(_ refusal, x example) bool { return now.Sub(x.since) > exampleLife })
}

// reasons are those to refuse a whole record, each with the name that it is counted by.
var reasons = []struct {
	reason  error
	name    string
	problem clustermesh.Problem
}{
	{authority.ErrNotPinned, "not_pinned", clustermesh.Problem{
		Code: problem.ClusterNotPinned, Message: "it publishes something here",
		Try: "if it should be a member, pin it (strait clusterset accept); otherwise find out who gave it the gossip key",
	}},
	{authority.ErrUnsealed, "unsigned", clustermesh.Problem{
		Code: problem.RecordUnsigned, Message: "a record came without a signature",
		Try: "upgrade its daemons and set authority.rootFile there; if that is done, an attacker with the gossip key forges records",
	}},
	{authority.ErrNotSigned, "other_root", clustermesh.Problem{
		Code: problem.RootDiffers, Message: "a record came with the signature of another root than is pinned",
		Try: "if the cluster got a new root, pin that (strait clusterset accept); if another cluster has the same name, give one of the two another; " +
			"otherwise an attacker with the gossip key forges records",
	}},
	{authority.ErrForged, "forged", clustermesh.Problem{
		Code: problem.RecordForged, Message: "a record came with a signature that neither its node nor its cluster made",
		Try: "an attacker with the gossip key, or on a compromised node, forges records: find the sender",
	}},
	{errCrowd, "crowd", clustermesh.Problem{
		Code: problem.OutsideAuthority, Message: "another node publishes something",
		Try: "if it has so many nodes, pin it, with a higher quota.nodes (authority.pinsFile)",
	}},
	{errClusters, "clusters", clustermesh.Problem{
		Code: problem.OutsideAuthority, Message: "another cluster publishes something",
		Try: "if an attacker with the gossip key invents clusters, pin those that are members (docs/security.md)",
	}},
	{ErrRevoked, "revoked", clustermesh.Problem{
		Code: problem.KeyRevoked, Message: "a node signs with a key that its cluster revoked",
		Try: "nothing to do while the machine is not in the right hands again; then give it a new key (docs/security.md)",
	}},
	{errOlder, "older", clustermesh.Problem{
		Code: problem.StatementOlder, Message: "a node brings back what its cluster stated of it before",
		Try: "nothing to do if the machine was restored from a snapshot: it gets a new statement within seconds; otherwise the machine was taken over: revoke its key (docs/security.md)",
	}},
	{errWithdrawn, "withdrawn", clustermesh.Problem{
		Code: problem.StatementWithdrawn, Message: "a node publishes under a statement that its cluster has withdrawn",
		Try: "nothing to do if its record comes within seconds: it gets a new statement; otherwise the machine keeps what was taken from it: look at it, and revoke its key if it was taken over (docs/security.md)",
	}},
	{errEarly, "early", clustermesh.Problem{
		Code: problem.RecordAhead, Message: "a node publishes under a statement from the future",
		Try: "correct the clock that is wrong: that of the machine that is named, or this one's",
	}},
}

// Refused returns how many records were refused in this life of the daemon, by reason.
func (s *verifier) Refused() map[string]uint64 { return maps.Clone(s.refused) }

// Refuses reports whether any record was refused lately.
func (s *verifier) Refuses() bool { return len(s.refusals) > 0 }
