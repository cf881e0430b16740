package api

import (
	"strings"
	"testing"
)

// TestPing: each combination of ways that answer and that do not has one meaning, which names the nodes
// and the port, and says what to do.
func TestPing(t *testing.T) {
	answers := func(way string) Way { return Way{Way: way, Sent: 3, Answered: 3, RTT: 12} }
	loses := func(way string, answered int, state, err string) Way {
		return Way{Way: way, To: "192.0.2.1:1", Node: "b/n3", Sent: 3, Answered: answered, State: state, Error: err}
	}
	for name, c := range map[string]struct {
		ways []Way
		want PingOutcome
		says string
	}{
		"all is well":         {[]Way{answers(WayGossip), answers(WayTunnel), answers(WayLarge)}, PingOK, "gossip 12.0 ms, tunnel 12.0 ms"},
		"the same cluster":    {[]Way{answers(WayGossip)}, PingOK, "gossip 12.0 ms"},
		"UDP is blocked":      {[]Way{answers(WayGossip), loses(WayTunnel, 0, "silent", "")}, PingFailed, "gossip 12.0 ms, tunnel no answer: UDP 51820 is blocked between a/n1 and b/n3"},
		"no echo":             {[]Way{answers(WayGossip), loses(WayTunnel, 0, "unknown", "")}, PingUnknown, "it never answered one"},
		"TCP is blocked":      {[]Way{loses(WayGossip, 0, "", "i/o timeout"), answers(WayTunnel)}, PingFailed, "TCP is blocked on the gossip port"},
		"no daemon":           {[]Way{loses(WayGossip, 0, "", "connection refused"), answers(WayTunnel)}, PingFailed, "no daemon listens"},
		"nothing answers":     {[]Way{loses(WayGossip, 0, "", ""), loses(WayTunnel, 0, "silent", "")}, PingFailed, "the machine is down"},
		"large ones are lost": {[]Way{answers(WayGossip), answers(WayTunnel), loses(WayLarge, 0, "", "")}, PingFailed, "transfers stall"},
		"some are lost":       {[]Way{answers(WayGossip), loses(WayTunnel, 2, "", "")}, PingFailed, "tunnel 1 of 3 lost: packets are lost"},
		"not probed":          {[]Way{answers(WayGossip), {Way: WayTunnel, Skipped: "its tunnel is not probed"}}, PingUnknown, "not probed"},
		"a deaf pod":          {[]Way{answers(WayGossip), answers(WayTunnel), loses(WayPod, 0, "", "connection refused")}, PingFailed, "the pod does not accept connections"},
	} {
		p := NewPing(Viewpoint{Cluster: "a", Node: "n1"}, "node", "b/n3", "b/n3", c.ways, 51820, 7946)
		if p.Outcome != c.want || !strings.Contains(p.Finding, c.says) || (p.Try == "") != (c.want == PingOK) {
			t.Errorf("%s: %s %q, try %q", name, p.Outcome, p.Finding, p.Try)
		}
	}
	for name, c := range map[string]struct {
		ways []Way
		want PingOutcome
		says string
	}{
		"all is well":     {[]Way{answers(WayFrontend), answers(WayEndpoint)}, PingOK, "all endpoints answer"},
		"headless":        {[]Way{answers(WayEndpoint)}, PingOK, "all endpoints answer"},
		"a dead endpoint": {[]Way{loses(WayFrontend, 2, "", ""), loses(WayEndpoint, 0, "", "timeout")}, PingFailed, "do not answer: 192.0.2.1:1 on b/n3"},
		"not balanced":    {[]Way{loses(WayFrontend, 0, "", "refused"), answers(WayEndpoint)}, PingFailed, "these frontends do not: 192.0.2.1:1"},
		"loss":            {[]Way{loses(WayFrontend, 2, "", ""), answers(WayEndpoint)}, PingFailed, "connections are lost: 192.0.2.1:1 (1 of 3)"},
		"nothing to try":  {nil, PingUnknown, "no TCP port"},
	} {
		p := NewPing(Viewpoint{Cluster: "a", Node: "n1"}, "service", "shop/cart", "", c.ways, 0, 0)
		if p.Outcome != c.want || !strings.Contains(p.Finding, c.says) || (p.Try == "") != (c.want == PingOK) || p.Ways == nil {
			t.Errorf("service, %s: %s %q, try %q", name, p.Outcome, p.Finding, p.Try)
		}
	}
}
