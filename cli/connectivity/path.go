package connectivity

import (
	"fmt"
	"strings"

	"strait.io/strait/internal/problem"
)

// dead are the states of tunnels that carry nothing.
var dead = map[string]problem.Code{"never": problem.TunnelNever, "silent": problem.TunnelSilent, "one-way": problem.TunnelOneWay, "returning": ""}

// path explains why a call to a pod's own address fails.
func (d diagnosis) path(r Result) Cause {
	server := r.Server.Cluster + "/" + r.Server.Node
	if r.Client.Cluster != r.To {
		if c, is := d.tunnels(r.From, server); is {
			return c
		}
	}
	passes := func(is func(Result) bool) bool {
		return len(d.find(func(x Result) bool {
			return x.State == OK && x.Way == ByPodAddress && x.Size == small && x.To == r.To && is(x)
		})) > 0
	}
	same := func(x Result) bool { return x.From == r.From && x.Server == r.Server }
	switch {
	case r.Client.Host && passes(func(x Result) bool { return same(x) && !x.Client.Host && x.Proto == r.Proto && x.Family == r.Family }):
		return because("look at the routes and the filter of both nodes: strait check, strait help STR4106",
			"pods on %s reach cluster %s, and calls from the node's own network do not: its packets leave with another source address than the other side accepts", r.From, r.To)
	case r.Proto == "UDP" && passes(func(x Result) bool { return same(x) && x.Kind == r.Kind && x.Proto == "TCP" && x.Family == r.Family }):
		return d.withPolicies(r, fmt.Sprintf("from %s to cluster %s, TCP passes and UDP does not: a NetworkPolicy or a firewall drops it", d.client(r), r.To))
	case r.Proto == "TCP" && passes(func(x Result) bool { return same(x) && x.Kind == r.Kind && x.Proto == "UDP" && x.Family == r.Family }):
		return d.withPolicies(r, fmt.Sprintf("from %s to cluster %s, UDP passes and TCP does not: a NetworkPolicy or a firewall drops it", d.client(r), r.To))
	case passes(func(x Result) bool { return same(x) && x.Kind == r.Kind && x.Proto == r.Proto && x.Family != r.Family }):
		return d.withPolicies(r, fmt.Sprintf("from %s to cluster %s, only calls by %s fail", d.client(r), r.To, r.Family))
	}
	if c, is := d.ownProblems(r, server); is {
		return c
	}
	if r.Client.Cluster == r.To {
		return d.withPolicies(r, fmt.Sprintf("%s do not reach the pod on %s in their own cluster: its network plugin does not carry it, or a NetworkPolicy drops it", d.client(r), server))
	}
	between := "although the tunnel between the nodes carries packets"
	if d.facts.tunnel(r.From, server) == nil {
		between = "which are not joined by a tunnel of strait"
	}
	return d.withPolicies(r, fmt.Sprintf("%s do not reach the pod on %s by its own address, %s: a NetworkPolicy or a firewall in one of the clusters drops it", d.client(r), server, between))
}

// tunnels explains a failure by a tunnel that carries nothing, as one of its ends sees it.
func (d diagnosis) tunnels(a, b string) (Cause, bool) {
	// The ends of one tunnel are one cause, so its text does not depend on which of them called.
	a, b = min(a, b), max(a, b)
	for _, end := range [][2]string{{a, b}, {b, a}} {
		t := d.facts.tunnel(end[0], end[1])
		if t == nil {
			continue
		}
		code, is := dead[t.State]
		if !is && !(t.State == "" && t.Handshake.IsZero()) {
			continue
		}
		if code == "" {
			code = problem.TunnelNever
		}
		cluster, _, _ := strings.Cut(end[1], "/")
		if p, found := d.facts.problemAbout(end[0], cluster, problem.TunnelNever, problem.TunnelSilent, problem.TunnelOneWay, problem.TunnelsAllSilent); found {
			code = p.Code
		}
		return Cause{Code: code, Message: fmt.Sprintf("the tunnel between %s and %s carries nothing (%s sees it as %q; its outer address is %s)", a, b, end[0], t.State, t.Underlay),
			Try: fmt.Sprintf("open UDP port %d between the two nodes, in both directions: strait help %s", t.Underlay.Port(), code)}, true
	}
	return Cause{}, false
}

// ownProblems explains a failure by what the daemons of both nodes report of tunnels and routes.
func (d diagnosis) ownProblems(r Result, server string) (Cause, bool) {
	for _, end := range [][2]string{{r.From, r.To}, {server, r.Client.Cluster}} {
		for _, p := range d.facts.Nodes[end[0]].Problems {
			if p.Code.Area() == problem.Tunnels && !p.Warning && (p.Ref.Cluster == "" || p.Ref.Concerns(end[1])) {
				return of("node "+end[0], p), true
			}
		}
		if trouble := d.facts.Nodes[end[0]].Error; trouble != "" {
			cluster, node, _ := strings.Cut(end[0], "/")
			return because(fmt.Sprintf("strait status --context %s --node %s", d.facts.context(cluster), node), "the daemon on %s does not answer: %s", end[0], trouble), true
		}
	}
	return Cause{}, false
}

// withPolicies names the NetworkPolicies that could be to blame.
func (d diagnosis) withPolicies(r Result, message string) Cause {
	var found []string
	clusters := []string{r.To}
	if r.Client.Cluster != r.To {
		clusters = append(clusters, r.Client.Cluster)
	}
	for _, c := range clusters {
		for _, name := range d.facts.Policies[c] {
			found = append(found, fmt.Sprintf("%s/%s in cluster %s", d.facts.Namespace, name, c))
		}
	}
	if len(found) > 0 {
		return because("look at the NetworkPolicy "+strings.Join(found, ", "), "%s", message)
	}
	return because("look for cluster-wide policies of the network plugins, and for firewalls of the nodes", "%s", message)
}

// balancer explains why an address of strait does not lead to a pod that is reached by its own.
func (d diagnosis) balancer(r Result) Cause {
	node := d.facts.Nodes[r.From]
	if r.Stage == Done {
		return because("strait explain "+d.facts.Namespace+"/"+ServiceOf(r.To)+" --context "+d.facts.context(r.Client.Cluster),
			"on %s, the %s of cluster %s leads elsewhere: %s", r.From, r.Way, r.To, r.Error)
	}
	for _, p := range node.Problems {
		if p.Code.Area() == problem.Balancer && !p.Warning {
			return of("node "+r.From, p)
		}
	}
	explain := fmt.Sprintf("strait explain %s/%s --context %s --node %s", d.facts.Namespace, ServiceOf(r.To), d.facts.context(r.Client.Cluster), r.Client.Node)
	for _, f := range node.Services[r.To].Frontends {
		switch {
		case len(f.Ahead) > 0:
			return because("strait help STR3103", "on %s, %s chooses before strait does", r.From, strings.Join(f.Ahead, ", "))
		case !f.InKernel:
			return because(explain, "on %s, the kernel's map differs from the plan for %s", r.From, f.Addr)
		case f.Tier == "":
			return because(explain, "on %s, %s has no endpoint that is used", r.From, f.Addr)
		}
	}
	if node.Error != "" {
		return because(fmt.Sprintf("strait status --context %s --node %s", d.facts.context(r.Client.Cluster), r.Client.Node), "the daemon on %s does not answer: %s", r.From, node.Error)
	}
	return because(explain, "%s reach the pods of cluster %s by their own addresses, and not by %s: %s", d.client(r), r.To, r.Way, r.Error)
}
