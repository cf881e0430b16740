package api

import (
	"fmt"
	"slices"
	"strings"
	"time"
)

// Ping is the answer of GET /v1/ping?to=…: what a node, a pod or a service answered just now, by each
// way there.
type Ping struct {
	Meta
	SeenFrom Viewpoint `json:"seenFrom"`
	// Target is "node", "pod" or "service", and Name its name.
	Target string `json:"target"`
	Name   string `json:"name"`
	// Node is where the node or pod is, as CLUSTER/NODE; empty for a service.
	Node string `json:"node,omitempty"`
	Ways []Way  `json:"ways"`
	// Outcome is one of the constants below. Finding says what the ways mean together, and Try what
	// to do about it.
	Outcome PingOutcome `json:"outcome"`
	Finding string      `json:"finding"`
	Try     string      `json:"try,omitempty"`
}

// PingOutcome sums up the ways of a Ping.
type PingOutcome string

// The outcomes. With PingUnknown, nothing failed, and something could not be tried.
const (
	PingOK      PingOutcome = "ok"
	PingFailed  PingOutcome = "failed"
	PingUnknown PingOutcome = "unknown"
)

// The ways of a Ping.
const (
	// WayGossip are TCP connections to the gossip port, outside the tunnel.
	WayGossip = "gossip"
	// WayTunnel are echo requests inside the tunnel, and WayLarge those as large as its MTU.
	WayTunnel = "tunnel"
	WayLarge  = "large packets"
	// WayPod are TCP connections to a pod, WayFrontend to a service's address, and WayEndpoint to
	// one of its endpoints.
	WayPod      = "pod"
	WayFrontend = "frontend"
	WayEndpoint = "endpoint"
)

// Way is one way to what was pinged, and what it answered there.
type Way struct {
	Way string `json:"way"`
	To  string `json:"to"`
	// Node is where an endpoint is, as CLUSTER/NODE.
	Node     string `json:"node,omitempty"`
	Sent     int    `json:"sent"`
	Answered int    `json:"answered"`
	// RTT is the shortest round-trip time of this ping, and Known that which the daemon measured
	// before, both in milliseconds; 0 if there is none.
	RTT   float64 `json:"rtt,omitempty"`
	Known float64 `json:"knownRTT,omitempty"`
	// Heard is when gossip last heard the node.
	Heard time.Time `json:"heard,omitzero"`
	// State is what the tunnel carries, as Tunnel.State.
	State string `json:"state,omitempty"`
	// Error is why the last attempt was not answered, and Skipped why there was none.
	Error   string `json:"error,omitempty"`
	Skipped string `json:"skipped,omitempty"`
}

// Works reports whether everything sent was answered.
func (w Way) Works() bool { return w.Sent > 0 && w.Answered == w.Sent }

// Dead reports whether nothing of what was sent was answered.
func (w Way) Dead() bool { return w.Sent > 0 && w.Answered == 0 }

// Detail is what is known of a way besides the counts.
func (w Way) Detail(now time.Time) string {
	var parts []string
	for _, s := range []string{w.Skipped, w.Node, w.Error} {
		if s != "" {
			parts = append(parts, s)
		}
	}
	if !w.Heard.IsZero() {
		parts = append(parts, "last heard "+Age(now.Sub(w.Heard))+" ago")
	}
	if w.Known > 0 {
		parts = append(parts, fmt.Sprintf("measured before: %.1f ms", w.Known))
	}
	if w.State != "" {
		parts = append(parts, "state: "+w.State)
	}
	return strings.Join(parts, ", ")
}

// said is a way and its outcome, in a few words.
func (w Way) said() string {
	switch {
	case w.Sent == 0:
		return w.Way + " not tried"
	case w.Answered == 0:
		return w.Way + " no answer"
	case w.Answered < w.Sent:
		return fmt.Sprintf("%s %d of %d lost", w.Way, w.Sent-w.Answered, w.Sent)
	}
	return fmt.Sprintf("%s %.1f ms", w.Way, w.RTT)
}

// NewPing makes an answer of what the ways answered, and says what that means. The ports are those of the
// tunnel and of gossip at the node that was pinged.
func NewPing(from Viewpoint, target, name, node string, ways []Way, tunnelPort, gossipPort uint16) *Ping {
	p := &Ping{Meta: Meta{APIVersion, KindPing}, SeenFrom: from, Target: target, Name: name, Node: node, Ways: orEmpty(ways)}
	j := pingJudge{p, from.Cluster + "/" + from.Node, tunnelPort, gossipPort}
	if target == "service" {
		p.Outcome, p.Finding, p.Try = j.service()
	} else {
		p.Outcome, p.Finding, p.Try = j.node()
	}
	return p
}

type pingJudge struct {
	*Ping
	self               string
	tunnel, gossipPort uint16
}

// way returns the first way of a kind; the zero value if there is none.
func (j pingJudge) way(kind string) Way {
	if i := slices.IndexFunc(j.Ways, func(w Way) bool { return w.Way == kind }); i >= 0 {
		return j.Ways[i]
	}
	return Way{Way: kind}
}

// node says what the ways to a node, or to a pod of it, mean. The first that is broken explains those
// that depend on it.
func (j pingJudge) node() (PingOutcome, string, string) {
	gossip, tunnel, large, pod := j.way(WayGossip), j.way(WayTunnel), j.way(WayLarge), j.way(WayPod)
	said := j.said()
	udp := fmt.Sprintf("let UDP through to port %d of %s, and back", j.tunnel, j.Node)
	switch {
	case gossip.Dead() && tunnel.Dead():
		return PingFailed, said + ": the machine is down, or nothing passes between " + j.self + " and it",
			"see whether the machine runs, and whether its network reaches this node's"
	case tunnel.Dead() && tunnel.State == "unknown":
		return PingUnknown, said + ": either UDP is blocked, or the machine answers no echo requests; it never answered one",
			"see whether its pods answer: strait ping POD; or " + udp
	case tunnel.Dead():
		return PingFailed, fmt.Sprintf("%s: UDP %d is blocked between %s and %s", said, j.tunnel, j.self, j.Node), udp
	case gossip.Dead():
		return PingFailed, said + ": " + gossipDead(gossip, j.self, j.Node), fmt.Sprintf("see whether straitd runs there, and let TCP and UDP through to port %d", j.gossipPort)
	case large.Dead():
		return PingFailed, said + ": large packets are lost, so that transfers stall",
			"set mesh.mtu on all nodes to what the path between them takes, less 80; or let ICMP through there"
	case pod.Dead():
		return PingFailed, said + ": the way to its node works, and the pod does not accept connections: " + pod.Error,
			"see whether it is ready, and whether a NetworkPolicy forbids it"
	}
	for _, w := range []Way{gossip, tunnel, large, pod} {
		if w.Sent > w.Answered {
			return PingFailed, said + ": packets are lost", "look for a link between the two nodes that is full or faulty"
		}
	}
	if tunnel.Skipped != "" {
		return PingUnknown, said + ": " + tunnel.Skipped, "see strait nodes and strait status"
	}
	return PingOK, said, ""
}

func gossipDead(w Way, self, node string) string {
	if strings.Contains(w.Error, "refused") {
		return "the machine answers, and no daemon listens there"
	}
	return fmt.Sprintf("TCP is blocked on the gossip port between %s and %s", self, node)
}

// said lists the outcomes of the ways that were tried. Large packets are only of interest if small ones
// pass and they do not.
func (j pingJudge) said() string {
	var parts []string
	for _, w := range j.Ways {
		if w.Sent > 0 && (w.Way != WayLarge || !w.Works() && !j.way(WayTunnel).Dead()) {
			parts = append(parts, w.said())
		}
	}
	return strings.Join(parts, ", ")
}

// service says what a service's frontends and endpoints mean.
func (j pingJudge) service() (PingOutcome, string, string) {
	var fronts, ends, silent, lossy []string
	explain := "see which endpoints are used, and why: strait explain " + j.Name
	for _, w := range j.Ways {
		switch {
		case w.Sent == 0 || w.Works():
		case w.Way == WayEndpoint:
			ends = append(ends, w.To+" on "+w.Node)
		case w.Answered == 0:
			silent = append(silent, w.To)
		default:
			lossy = append(lossy, fmt.Sprintf("%s (%d of %d)", w.To, w.Sent-w.Answered, w.Sent))
		}
		if w.Way == WayFrontend && w.Works() {
			fronts = append(fronts, fmt.Sprintf("%s %.1f ms", w.To, w.RTT))
		}
	}
	tried := slices.ContainsFunc(j.Ways, func(w Way) bool { return w.Sent > 0 })
	switch {
	case !tried:
		return PingUnknown, "no TCP port to connect to is in use", explain
	case len(ends) > 0:
		return PingFailed, "these endpoints do not answer: " + strings.Join(ends, ", "), "look at the way to one: strait ping CLUSTER/NODE"
	case len(silent) > 0:
		return PingFailed, "endpoints answer, and these frontends do not: " + strings.Join(silent, ", ") +
			"; straitd is outside the cgroup that it serves, or another program decides first", "strait check, and " + explain
	case len(lossy) > 0:
		return PingFailed, "connections are lost: " + strings.Join(lossy, ", "), explain
	case len(fronts) == 0:
		return PingOK, "all endpoints answer", ""
	}
	return PingOK, strings.Join(fronts, ", ") + "; all endpoints answer", ""
}
