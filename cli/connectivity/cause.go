package connectivity

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"strait.io/strait/internal/problem"
)

// Cause is the part that is to blame for failures.
type Cause struct {
	// Code is that of the daemon's problem, if it knows one.
	Code    problem.Code `json:"code,omitempty"`
	Message string       `json:"message"`
	Try     string       `json:"try,omitempty"`
	// Results are the failed cases that it explains, by their place in the report.
	Results []int `json:"results"`
}

// Causes explains every failure. Failures that one part is to blame for have one cause.
func Causes(results []Result, facts Facts) (out []Cause) {
	d := diagnosis{results, facts}
	for i, r := range results {
		if r.State != Failed {
			continue
		}
		c := d.explain(r)
		same := func(o Cause) bool { return o.Code == c.Code && o.Message == c.Message && o.Try == c.Try }
		if at := slices.IndexFunc(out, same); at >= 0 {
			out[at].Results = append(out[at].Results, i)
			continue
		}
		c.Results = []int{i}
		out = append(out, c)
	}
	slices.SortStableFunc(out, func(a, b Cause) int { return cmp.Compare(len(b.Results), len(a.Results)) })
	return out
}

type diagnosis struct {
	results []Result
	facts   Facts
}

func because(try, format string, args ...any) Cause {
	return Cause{Message: fmt.Sprintf(format, args...), Try: try}
}

// of makes a cause of what a daemon reports.
func of(node string, p problem.Problem) Cause {
	return Cause{Code: p.Code, Message: node + ": " + p.Finding(), Try: cmp.Or(p.Try, "strait help "+string(p.Code))}
}

// find returns the results for which a condition holds.
func (d diagnosis) find(is func(Result) bool) (out []Result) {
	for _, r := range d.results {
		if is(r) {
			out = append(out, r)
		}
	}
	return out
}

// explain goes from what everything else needs to what is special: the import, the name, the way to the
// pod, the size, the balancer.
func (d diagnosis) explain(r Result) Cause {
	if r.Missing != "" {
		return d.imported(r)
	}
	if r.Stage == Resolve {
		return d.name(r)
	}
	if base, broken := d.base(r); broken {
		return d.path(base)
	}
	if r.Size > small {
		if c, is := d.size(r); is {
			return c
		}
	}
	if r.Way != ByPodAddress {
		return d.balancer(r)
	}
	return d.path(r)
}

// base returns a failed small call to a pod's own address that r depends on: of the same client to the same
// pod, or to any of the cluster if any may answer.
func (d diagnosis) base(r Result) (Result, bool) {
	all := d.find(func(x Result) bool {
		return x.State == Failed && x.Way == ByPodAddress && x.Size == small && x.From == r.From && x.Kind == r.Kind &&
			x.To == r.To && x.Family == r.Family && x.Proto == r.Proto && (r.Server == (Identity{}) || x.Server == r.Server)
	})
	if len(all) == 0 {
		return Result{}, false
	}
	return all[0], true
}

// imported explains why a cluster has no ServiceImport.
func (d diagnosis) imported(r Result) Cause {
	from, to := r.Client.Cluster, r.To
	if trouble := d.facts.Exports[to]; trouble != "" {
		return because(fmt.Sprintf("kubectl --context %s -n %s describe serviceexport %s", d.facts.context(to), d.facts.Namespace, ServiceOf(to)),
			"cluster %s does not export: ServiceExport %s/%s: %s", to, d.facts.Namespace, ServiceOf(to), trouble)
	}
	status := fmt.Sprintf("strait clusterset status --context %s --context %s", d.facts.context(from), d.facts.context(to))
	for _, p := range d.facts.Nodes[r.From].Problems {
		if !p.Warning && (p.Ref.Concerns(to) || p.Code.Area() == problem.Gossip) {
			return of("node "+r.From, p)
		}
	}
	if from != to && d.facts.Nodes[r.From].Error == "" && len(d.facts.Nodes[r.From].Clusters) > 0 {
		c, known := d.facts.cluster(r.From, to)
		switch {
		case !known:
			return because(fmt.Sprintf("join them: strait clusterset connect --context %s --context %s", d.facts.context(from), d.facts.context(to)),
				"cluster %s does not know cluster %s", from, to)
		case c.State != "joined":
			return because(status, "cluster %s does not hear cluster %s: it is %s", from, to, c.State)
		}
	}
	return because(fmt.Sprintf("look at the leader of %s: strait check --context %s", from, d.facts.context(from)),
		"%s, although cluster %s exports it", r.Missing, to)
}

// name explains why a name does not resolve.
func (d diagnosis) name(r Result) Cause {
	cluster := r.Client.Cluster
	context := d.facts.context(cluster)
	has, known := d.facts.Zones[cluster]
	if known && !has {
		return because("strait dns setup --context "+context, "CoreDNS of cluster %s does not have the zone clusterset.local", cluster)
	}
	resolves := d.find(func(x Result) bool { return x.Client.Cluster == cluster && x.Group == Names && x.Stage != Resolve })
	sameNode := func(host bool) []Result {
		return d.find(func(x Result) bool {
			return x.Client.Cluster == cluster && x.Client.Host == host && x.Group == Names && x.Stage != Resolve
		})
	}
	switch {
	case r.Client.Host && len(sameNode(false)) > 0 && len(sameNode(true)) == 0:
		return because("check that nodes reach the ClusterIP of the Service kube-dns", "names resolve in pods of cluster %s, but not in the network of its nodes: %s", cluster, r.Error)
	case known && len(resolves) == 0:
		return because(fmt.Sprintf("kubectl --context %s -n kube-system logs -l k8s-app=kube-dns; a NodeLocal DNSCache must forward the zone too", context),
			"CoreDNS of cluster %s has the zone clusterset.local, but resolves no name in it: %s", cluster, r.Error)
	case len(resolves) == 0:
		return because("let strait itself answer: docs/kubernetes.md#dns", "names in clusterset.local do not resolve in cluster %s: %s", cluster, r.Error)
	}
	return because(fmt.Sprintf("kubectl --context %s -n %s get serviceimports,endpointslices", context, d.facts.Namespace),
		"cluster %s resolves other names, but not %s: %s", cluster, strings.TrimSuffix(r.Target, "."), r.Error)
}

// size explains why large packets do not arrive where small ones do.
func (d diagnosis) size(r Result) (Cause, bool) {
	like := func(x Result) bool {
		return x.From == r.From && x.Kind == r.Kind && x.To == r.To && x.Way == r.Way && x.Proto == r.Proto && x.Family == r.Family
	}
	if len(d.find(func(x Result) bool { return like(x) && x.Size == small && x.State == OK })) == 0 {
		return Cause{}, false
	}
	full := d.find(func(x Result) bool {
		return x.From == r.From && x.Kind == r.Kind && x.To == r.To && x.Family == r.Family && x.Size > small && x.State == OK
	})
	for _, end := range [][2]string{{r.From, r.To}, {r.Server.Cluster + "/" + r.Server.Node, r.Client.Cluster}} {
		if p, found := d.facts.problemAbout(end[0], end[1], problem.TunnelNarrow); found {
			return of("node "+end[0], p), true
		}
	}
	if r.Proto == "UDP" && len(full) > 0 {
		return because("let IP fragments pass in firewalls and NetworkPolicies, or keep datagrams below the MTU",
			"from %s to cluster %s, datagrams of %s are lost, and smaller packets pass: fragments are dropped on the way", d.client(r), r.To, bytesText(r.Size)), true
	}
	try := "set the MTU of the pods' network to what the nodes' network carries"
	if r.Client.Cluster != r.To {
		try = "set mesh.mtu on all nodes to what the path carries, less 80: strait help STR4205"
	}
	return because(try, "from %s to cluster %s, small packets pass and full ones are lost: the MTU is larger than the path carries", d.client(r), r.To), true
}

// client names the client of a result in a sentence.
func (d diagnosis) client(r Result) string {
	if r.Client.Host {
		return "the network of node " + r.From
	}
	return "pods on " + r.From
}
