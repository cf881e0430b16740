package lab

import (
	"os"
	"regexp"
	"strings"

	"strait.io/strait/internal/fabric"
)

// core is the namespace of the core router, which joins the regions.
const core = "strait-core"

// NetNS returns the name of the place's network namespace, as `ip netns` shows it.
func (p Place) NetNS() string {
	if p.Pod == "" {
		return "strait-" + p.Node
	}
	return "strait-" + p.Node + "-" + p.Pod
}

func (c Cluster) routerNS() string { return "strait-" + c.Name + "-router" }

// namespaces lists every network namespace of the topology: pods first, routers last.
func (t Topology) namespaces() []string {
	var pods, nodes, routers []string
	for _, c := range t.Clusters {
		routers = append(routers, c.routerNS())
		for _, n := range c.Nodes {
			nodes = append(nodes, Place{Node: n.Name}.NetNS())
			for _, p := range n.Pods {
				pods = append(pods, Place{n.Name, p.Kind}.NetNS())
			}
		}
	}
	return append(append(append(pods, nodes...), routers...), core)
}

// ours matches every name that a lab can give to a namespace, and no other name that begins with
// strait-.
var ours = regexp.MustCompile(`^strait-(core|(` + strings.Join(ClusterNames, "|") + `)-(router|[0-9]+(-(serve|client|far))?))$`)

// leftovers lists the labs' network namespaces that exist on the machine now.
func leftovers() []string {
	entries, err := os.ReadDir(fabric.NetNSDir)
	if err != nil {
		return nil
	}
	var out []string
	for _, e := range entries {
		if ours.MatchString(e.Name()) {
			out = append(out, e.Name())
		}
	}
	return out
}
