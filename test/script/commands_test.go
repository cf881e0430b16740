package script

import (
	"fmt"
	"strings"

	"github.com/rogpeppe/go-internal/testscript"

	"strait.io/strait/clustermesh"
	"strait.io/strait/daemon/plan"
)

type worldKey struct{}

// commands are what a script can say, besides testscript's own (cp, rm, cmp, stdout, …). NODE is
// cluster/node; each command that shows something prints a line per item, to be compared with
// "cmp stdout FILE".
//
//	derived                   ClusterSetIPs are those of derived Services, not of a range
//	nodes CLUSTER             CLUSTER's YAML lists all of its Nodes, as an API server does
//	clone NODE OTHER          NODE has the WireGuard key of OTHER, as a cloned machine
//	gone NODE                 NODE's machine is away for good; its object goes with the YAML
//	sync                      read all YAML, gossip and plan until nothing changes
//	contact NODE OTHER WHAT   NODE observes OTHER as alive, quiet, silent or held
//	silent NODE OTHER         NODE claims that OTHER has gone silent (silent NODE: claims nothing)
//	cut CLUSTER / heal        cut a cluster off from all others / undo
//	cidrs CIDR…               the ranges of ClusterSetIPs; before the first sync
//	maps FRONTENDS BACKENDS   the sizes of the maps of load balancers that are first looked at later
//	desired NAME FILE         make a load balancer without a node hold what FILE says, in the form of frontends
//	optout NAME add|remove C  opt out cgroup C, which is below the load balancer's; needs [kernel], as dial
//	dial NAME C ADDRESS       whether a process in cgroup C, which is made, is served at ADDRESS, a UDP frontend
//	shares NODE SERVICE N     make N connections, and compare each endpoint's share with the plan; needs [kernel]
//	frontends NODE|NAME       what the load balancer holds
//	peers NODE, routes NODE   what WireGuard and the routing table should hold
//	imports NODE              the imports with their ClusterSetIPs
//	globals NODE              the cluster's global services with who shares theirs
//	explain NODE SERVICE      each endpoint with tier and reason, of the import, then of the global service
//	cluster NODE SERVICE      the endpoints of an import that NODE's cluster as a whole would use
//	problems NODE             one line each, those of the source and of the plan
var commands = map[string]func(ts *testscript.TestScript, neg bool, args []string){
	"derived":   command(0, cmdDerived),
	"nodes":     command(1, cmdNodes),
	"gone":      command(1, cmdGone),
	"clone":     command(2, cmdClone),
	"sync":      command(0, cmdSync),
	"contact":   command(3, cmdContact),
	"silent":    command(-1, cmdSilent),
	"cut":       command(1, cmdCut),
	"heal":      command(0, cmdHeal),
	"cidrs":     command(-1, cmdCIDRs),
	"maps":      command(2, cmdMaps),
	"desired":   command(2, cmdDesired),
	"optout":    command(3, cmdOptOut),
	"dial":      command(3, cmdDial),
	"shares":    command(3, cmdShares),
	"frontends": command(1, cmdFrontends),
	"peers":     command(1, cmdPeers),
	"routes":    command(1, cmdRoutes),
	"imports":   command(1, cmdImports),
	"globals":   command(1, cmdGlobals),
	"explain":   command(2, cmdExplain),
	"cluster":   command(2, cmdCluster),
	"problems":  command(1, cmdProblems),
}

// command checks the number of arguments (-1: any) and turns errors into failures.
func command(n int, f func(w *world, args []string) error) func(*testscript.TestScript, bool, []string) {
	return func(ts *testscript.TestScript, neg bool, args []string) {
		if n >= 0 && len(args) != n {
			ts.Fatalf("want %d arguments, got %q", n, args)
		}
		w := ts.Value(worldKey{}).(*world)
		w.out.Reset()
		err := f(w, args)
		if err == nil && w.out.Len() == 0 {
			// testscript keeps the last command's output if there is none.
			w.out.WriteString("(nothing)\n")
		}
		ts.Stdout().Write([]byte(w.out.String()))
		switch {
		case err != nil && !neg:
			ts.Fatalf("%v", err)
		case err == nil && neg:
			ts.Fatalf("succeeded, but should not")
		case err != nil:
			fmt.Fprintln(ts.Stderr(), err)
		}
	}
}

func (w *world) node(name string) (*node, error) {
	cluster, n, _ := strings.Cut(name, "/")
	o := clustermesh.Origin{Cluster: clustermesh.ClusterName(cluster), Node: clustermesh.NodeName(n)}
	if w.nodes[o] == nil {
		return nil, fmt.Errorf("no node %q: nodes are %v (did you sync?)", name, w.origins())
	}
	return w.nodes[o], nil
}

func cmdSync(w *world, _ []string) error {
	w.read(w.clusters())
	return w.sync()
}

func cmdDerived(w *world, _ []string) error {
	w.cidrs = nil
	return nil
}

func cmdNodes(w *world, args []string) error {
	w.known[clustermesh.ClusterName(args[0])] = true
	return nil
}

func cmdClone(w *world, args []string) error {
	n, err := w.node(args[0])
	if err != nil {
		return err
	}
	of, err := w.node(args[1])
	if err != nil {
		return err
	}
	n.clone = &of.origin
	return w.sync()
}

// cmdGone lets so much time pass that no node waits for the daemon any more.
func cmdGone(w *world, args []string) error {
	n, err := w.node(args[0])
	if err != nil {
		return err
	}
	delete(w.nodes, n.origin)
	if err := w.sync(); err != nil {
		return err
	}
	for range 20 {
		w.tick()
	}
	return w.sync()
}

func cmdContact(w *world, args []string) error {
	n, err := w.node(args[0])
	if err != nil {
		return err
	}
	other, err := w.node(args[1])
	if err != nil {
		return err
	}
	var c clustermesh.Contact
	if err := c.UnmarshalText([]byte(args[2])); err != nil {
		return err
	}
	n.contacts = n.contacts.With(other.origin, c)
	return w.sync()
}

func cmdSilent(w *world, args []string) error {
	n, err := w.node(args[0])
	if err != nil {
		return err
	}
	n.silent = nil
	for _, a := range args[1:] {
		other, err := w.node(a)
		if err != nil {
			return err
		}
		epoch := n.replica.Records().Get(other.origin).Stamp.Epoch
		n.silent = append(n.silent, clustermesh.Silence{Origin: other.origin, Epoch: epoch})
	}
	return w.sync()
}

func cmdCut(w *world, args []string) error {
	for o, n := range w.nodes {
		n.cut = string(o.Cluster) == args[0]
		for p := range w.nodes {
			if (string(p.Cluster) == args[0]) != n.cut {
				n.contacts = n.contacts.With(p, clustermesh.Silent)
			}
		}
	}
	return nil
}

func cmdHeal(w *world, _ []string) error {
	for _, n := range w.nodes {
		n.cut = false
		n.contacts = clustermesh.ByOrigin[clustermesh.Contact]{}
	}
	return w.sync()
}

func cmdPeers(w *world, args []string) error {
	n, err := w.node(args[0])
	if err != nil {
		return err
	}
	for _, p := range n.result.Desired.Peers {
		fmt.Fprintln(&w.out, p.Name, p.Underlay, p.AllowedIPs)
	}
	return nil
}

func cmdRoutes(w *world, args []string) error {
	n, err := w.node(args[0])
	if err != nil {
		return err
	}
	for _, r := range n.result.Desired.Routes {
		switch {
		case r.Unreachable:
			fmt.Fprintln(&w.out, "unreachable", r.Dst)
		case r.Src.IsValid():
			fmt.Fprintln(&w.out, r.Dst, "src", r.Src)
		default:
			fmt.Fprintln(&w.out, r.Dst)
		}
	}
	return nil
}

func cmdImports(w *world, args []string) error {
	n, err := w.node(args[0])
	if err != nil {
		return err
	}
	for _, i := range n.result.Imports {
		fmt.Fprintln(&w.out, i.Service, i.Type, i.IPs, i.Ports, "by", i.Exporters)
	}
	return nil
}

func cmdGlobals(w *world, args []string) error {
	n, err := w.node(args[0])
	if err != nil {
		return err
	}
	for _, g := range n.result.Globals {
		fmt.Fprintln(&w.out, g.Service, g.IPs, g.Ports, "shared by", g.Sharers)
	}
	return nil
}

func cmdExplain(w *world, args []string) error {
	n, err := w.node(args[0])
	if err != nil {
		return err
	}
	var all []plan.Frontend
	for _, i := range n.result.Imports {
		if i.Service.String() == args[1] {
			all = append(all, i.Frontends()...)
		}
	}
	for _, g := range n.result.Globals {
		if g.Service.String() == args[1] {
			all = append(all, g.Frontends()...)
		}
	}
	for _, f := range all {
		fmt.Fprintf(&w.out, "%s tier %s\n", f.Port, f.Choice.Tier)
		for _, v := range f.Choice.Verdicts {
			fmt.Fprintf(&w.out, "  %s %s/%s %s weight %d: %s\n", v.Addr, v.Cluster, v.Node, v.Tier, v.Weight, v.Reason)
		}
	}
	return nil
}

func cmdCluster(w *world, args []string) error {
	n, err := w.node(args[0])
	if err != nil {
		return err
	}
	for _, i := range n.result.Imports {
		if i.Service.String() != args[1] {
			continue
		}
		for _, c := range i.ForCluster() {
			fmt.Fprint(&w.out, c.Port, " ", c.Family)
			for _, v := range c.Choice.Verdicts {
				if v.Weight > 0 {
					fmt.Fprint(&w.out, " ", v.Addr)
				}
			}
			fmt.Fprintln(&w.out)
		}
	}
	return nil
}

func cmdProblems(w *world, args []string) error {
	n, err := w.node(args[0])
	if err != nil {
		return err
	}
	all := append(n.result.Problems, w.local[n.origin.Cluster].Problems...)
	for _, p := range clustermesh.SortProblems(all) {
		p.File = strings.TrimPrefix(p.File, w.dir+"/")
		fmt.Fprintln(&w.out, p)
	}
	return nil
}
