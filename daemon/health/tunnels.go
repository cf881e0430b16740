// Package health decides what measurements of this node mean: which tunnels do not carry what they
// should, and which packets the filter keeps dropping.
//
// Inputs are verdicts about tunnels, counters, a plan and a state; outputs are faults for the planner,
// Problems for people, and whom to probe. Pure. It must not know how tunnels are probed or where the
// counters are.
package health

import (
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"slices"
	"time"

	"strait.io/strait/clustermesh"
	"strait.io/strait/daemon/plan"
	"strait.io/strait/datapath/tunnelhealth"
	"strait.io/strait/internal/problem"
)

// Tunnels is what is known of the tunnels to nodes.
type Tunnels map[clustermesh.Origin]tunnelhealth.Verdict

// Faults returns what is wrong with tunnels, so that other ways are preferred. Loss alone is too weak a sign:
// a machine that is busy answers late.
func (t Tunnels) Faults() map[clustermesh.Origin]plan.Fault {
	out := map[clustermesh.Origin]plan.Fault{}
	for o, v := range t {
		switch {
		case v.State.Dark():
			out[o] = plan.Fault{Why: darkness(v)}
		case v.State == tunnelhealth.Narrow:
			out[o] = plan.Fault{Why: fmt.Sprintf("carries no packets of %d bytes", v.Size), Impaired: true}
		}
	}
	return out
}

// darkness describes what a dark tunnel does. It stays the same while the state does.
func darkness(v tunnelhealth.Verdict) string {
	since := clock(v.Since)
	switch v.State {
	case tunnelhealth.Never:
		return "never had a handshake"
	case tunnelhealth.OneWay:
		return "carries packets from there only, since " + since
	case tunnelhealth.Returning:
		return "carries packets again since " + since + ", and is preferred again when it has for a while"
	}
	return "carries nothing since " + since
}

func clock(t time.Time) string { return t.UTC().Format("15:04:05 UTC") }

const (
	// tellAfter is how long a tunnel must be down to be a Problem. When a machine leaves, gossip notices
	// before that: it takes 5 s at most, and a tunnel counts as down after 2.5 s at least.
	tellAfter = 4 * time.Second
	// maxDown is how many tunnels that are down are Problems of their own.
	maxDown = 16
)

// Problems reports the tunnels that do not carry what they should, and how soon there may be more to
// report; 0 if that is not known. A machine that does not answer at all is no fault of its tunnel.
func (t Tunnels) Problems(unprobed error, s clustermesh.State, now time.Time) (out []problem.Problem, again time.Duration) {
	var down, lesser []problem.Problem
	judged, young := 0, 0
	for _, o := range slices.SortedFunc(maps.Keys(t), clustermesh.Origin.Compare) {
		v := t[o]
		if v.State == tunnelhealth.Unknown || !Hears(s.Contacts.Get(o)) {
			continue
		}
		judged++
		p, is := tunnelProblem(o, v)
		from := v.Since
		if v.Gone.After(from) {
			from = v.Gone // the tunnel to a machine that is back needs a moment
		}
		switch wait := tellAfter - now.Sub(from); {
		case !is:
		case !v.State.Down():
			lesser = append(lesser, p)
		case wait > 0:
			young++
			if again == 0 || wait < again {
				again = wait
			}
		default:
			down = append(down, p)
		}
	}
	if n := len(down) + young; len(down) > 0 && n > 1 && (n > maxDown || n == judged) {
		down = []problem.Problem{manyDown(down[0], n, judged)}
	}
	if unprobed != nil {
		lesser = append(lesser, notProbed(unprobed))
	}
	return append(down, lesser...), again
}

// manyDown sums up tunnels that are down.
func manyDown(first problem.Problem, down, judged int) problem.Problem {
	return problem.Problem{
		Code: problem.TunnelsAllSilent, Object: "tunnels",
		Message: fmt.Sprintf("%d of %d carry nothing, though gossip hears the nodes; one of them is the %s, which %s",
			down, judged, first.Object, first.Message),
		Try: "look for what they have in common: the firewall of this node, or of its network, must let UDP through to and from WireGuard's port; strait nodes lists the tunnels",
	}
}

// Hears reports whether the machine answers outside the tunnel.
func Hears(c clustermesh.Contact) bool { return c.Heard() || c == clustermesh.Quiet }

func notProbed(err error) problem.Problem {
	p := problem.Problem{
		Code: problem.TunnelsUnprobed, Object: "tunnels", Warning: true,
		Message: "it is unknown what they carry, so that traffic stays where they carry nothing: " + err.Error(),
	}
	if errors.Is(err, fs.ErrPermission) {
		p.Try = "upgrade the chart with the image: the daemon needs the capability NET_RAW"
	}
	return p
}

// tunnelCodes are those of the states that are Problems.
var tunnelCodes = map[tunnelhealth.State]problem.Code{
	tunnelhealth.Never: problem.TunnelNever, tunnelhealth.Silent: problem.TunnelSilent, tunnelhealth.OneWay: problem.TunnelOneWay,
	tunnelhealth.Lossy: problem.TunnelLossy, tunnelhealth.Narrow: problem.TunnelNarrow,
}

// tunnelProblem reports a tunnel, if there is something to report. The text stays the same while the state
// does.
func tunnelProblem(o clustermesh.Origin, v tunnelhealth.Verdict) (problem.Problem, bool) {
	code, is := tunnelCodes[v.State]
	p := problem.Named("tunnel to", o.String()).Problem(problem.Problem{Code: code, Warning: code == problem.TunnelLossy})
	const firewall = "let UDP through between the two nodes' WireGuard ports, in both directions"
	switch v.State {
	case tunnelhealth.Never:
		p.Message = "never had a handshake: nothing that is sent to its pods arrives"
		p.Try = firewall + "; if it is open, compare the node's public key in strait nodes -o json with that of wg show there"
	case tunnelhealth.Silent:
		p.Message = "carries nothing since " + clock(v.Since) + ": nothing comes from the node"
		p.Try = firewall
	case tunnelhealth.OneWay:
		p.Message = "carries packets in one direction only, since " + clock(v.Since) + ": the node's arrive here, and this node's do not arrive there"
		p.Try = firewall
	case tunnelhealth.Lossy:
		p.Message = "loses packets: a tenth of the probes or more was not answered"
		p.Try = "look for a link between the two nodes that is full or faulty: strait nodes shows the loss"
	case tunnelhealth.Narrow:
		p.Message = fmt.Sprintf("carries small packets, and none of %d bytes, which is its MTU: transfers stall", v.Size)
		p.Try = "set mesh.mtu on all nodes to what the path between them takes, less 80, if that is 1280 or more; otherwise widen the path, or let ICMP through there"
	}
	return p, is
}
