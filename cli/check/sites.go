package check

import (
	"maps"
	"math"
	"net/netip"
	"slices"
	"strings"

	"strait.io/strait/daemon/api"
)

// Site is a cluster before strait is installed in it.
type Site struct {
	// Context is that of the kubeconfig, and ID the cluster's name in the clusterset; empty if it has none.
	Context, ID string
	// Installed is true if strait is there already.
	Installed bool
	// Machines are what its nodes have; Missing are nodes of which that is not known, and why.
	Machines []api.NodeFacts
	Missing  map[string]string
	// Replies are what came back to each node, by its name. The nodes in them are "CONTEXT/NODE".
	Replies map[string][]api.PortReply
	// Ranges are those of its pods.
	Ranges []netip.Prefix
	// Served are the versions of ServiceExports that it serves; empty if strait brings them.
	Served []string
	// Denied are the objects of strait that the user may not make, such as "DaemonSet strait-system/strait".
	Denied []string
	// DNSError is why its CoreDNS cannot answer for the clusterset; empty if it can.
	DNSError string
	// Warnings are about its network.
	Warnings []string
	// Unread are things that could not be found out.
	Unread []string
}

// PreSites makes the checks of clusters in which strait is not installed yet.
func PreSites(sites []Site) []Check {
	p := preChecker{}
	for _, s := range sites {
		for _, m := range s.Machines {
			m.Node = s.Context + "/" + m.Node
			p.machines = append(p.machines, m)
		}
	}
	p.clusters(sites)
	p.nodes(sites)
	p.kernel()
	p.system()
	p.network()
	p.between(sites)
	return p.checks
}

// each collects what is found in each cluster.
func each(sites []Site, find func(s *Site) []Finding) (out []Finding) {
	for i := range sites {
		for _, f := range find(&sites[i]) {
			if len(f.Nodes) == 0 {
				f.Nodes = []string{"context " + sites[i].Context}
			}
			out = append(out, f)
		}
	}
	return out
}

func (p *preChecker) clusters(sites []Site) {
	const category = "clusters"
	p.add(category, "strait is not there yet", each(sites, func(s *Site) []Finding {
		if !s.Installed {
			return nil
		}
		return found(Warning, "check what runs: strait check --context "+s.Context, "strait is installed; its ports are taken by itself")
	})...)
	p.add(category, "their ids differ", sameIDs(sites)...)
	p.add(category, "their pods have different ranges", overlaps(sites)...)
	p.add(category, "you may install strait", each(sites, func(s *Site) (out []Finding) {
		for _, what := range s.Denied {
			out = append(out, found(Failed, "use an account that may, such as one of cluster-admin", "you may not create %s", what)...)
		}
		return out
	})...)
	p.add(category, "they take the MCS API", each(sites, func(s *Site) []Finding {
		if len(s.Served) == 0 || slices.Contains(s.Served, "v1beta1") {
			return nil
		}
		return found(Warning, "let strait add it: strait install --upgrade-crds; or upgrade what installed the CRDs",
			"ServiceExports are served as %s alone, and v1beta1 is missing", strings.Join(s.Served, ", "))
	})...)
	p.add(category, "CoreDNS can answer for the clusterset", each(sites, func(s *Site) []Finding {
		if s.DNSError == "" {
			return nil
		}
		return found(Warning, "see docs/kubernetes.md, \"DNS\"", "%s", s.DNSError)
	})...)
	p.add(category, "their networks go well with strait", each(sites, func(s *Site) (out []Finding) {
		for _, w := range s.Warnings {
			out = append(out, found(Warning, "", "%s", w)...)
		}
		return out
	})...)
	p.add(category, "all of this could be read", each(sites, func(s *Site) (out []Finding) {
		for _, w := range s.Unread {
			out = append(out, found(Unknown, "", "%s", w)...)
		}
		return out
	})...)
}

func sameIDs(sites []Site) (out []Finding) {
	first := map[string]string{}
	for _, s := range sites {
		if s.ID == "" {
			continue
		}
		if other, is := first[s.ID]; is {
			f := found(Failed, "give one of them another name: strait install --cluster NAME", "contexts %s and %s lead to clusters with one id, %s", other, s.Context, s.ID)
			out = append(out, f...)
			continue
		}
		first[s.ID] = s.Context
	}
	return out
}

func overlaps(sites []Site) (out []Finding) {
	for i, a := range sites {
		if len(a.Ranges) == 0 {
			f := found(Warning, "name them when the clusters join: strait clusterset connect --pods "+a.Context+"=CIDR", "neither its network nor its Nodes have the ranges of the pods, so connect would take them from the pods")
			f[0].Nodes = []string{"context " + a.Context}
			out = append(out, f...)
		}
		for _, b := range sites[:i] {
			for _, x := range a.Ranges {
				for _, y := range b.Ranges {
					if x.Overlaps(y) {
						out = append(out, found(Failed, "clusters of one clusterset need different ranges: one of them has to change", "%s of context %s overlaps with %s of context %s", y, b.Context, x, a.Context)...)
					}
				}
			}
		}
	}
	return out
}

func (p *preChecker) nodes(sites []Site) {
	p.add("nodes", "each can run the image", each(sites, func(s *Site) (out []Finding) {
		for _, node := range slices.Sorted(maps.Keys(s.Missing)) {
			f := found(Failed, "see docs/kubernetes.md for where the image comes from; name it with --image", "%s", s.Missing[node])
			f[0].Nodes = []string{s.Context + "/" + node}
			out = append(out, f...)
		}
		return out
	})...)
}

// maxAhead is by how many seconds the clocks of two machines may differ. From there on, times in answers
// mislead.
const maxAhead = 5

func (p *preChecker) between(sites []Site) {
	const category = "network"
	var ports, clocks []Finding
	asked, compared := 0, map[string]bool{}
	for _, s := range sites {
		for _, node := range slices.Sorted(maps.Keys(s.Replies)) {
			from, best := s.Context+"/"+node, map[string]api.PortReply{}
			for _, r := range s.Replies[node] {
				asked++
				if r.Error != "" {
					f := found(Failed, "open "+r.Port+" between the nodes of all clusters, in both directions: in firewalls, security groups and network policies", "%s: %s", r.Port, r.Error)
					f[0].Nodes = []string{from + " → " + r.Node}
					ports = append(ports, f...)
				} else if b, is := best[r.Node]; !is || r.RTT < b.RTT {
					best[r.Node] = r
				}
			}
			for _, to := range slices.Sorted(maps.Keys(best)) {
				pair := min(from, to) + " and " + max(from, to)
				// The round trip is all that can be wrong with the difference.
				if ahead := best[to].Ahead; math.Abs(ahead)-best[to].RTT > maxAhead && !compared[pair] {
					compared[pair] = true
					f := found(Warning, "let both synchronise their clocks, with chrony or systemd-timesyncd", "the clocks of %s differ by %.0f s", pair, math.Abs(ahead))
					clocks = append(clocks, f...)
				}
			}
		}
	}
	if asked == 0 {
		if len(sites) == 1 && len(sites[0].Machines) == 1 {
			return // there is no other
		}
		ports = found(Unknown, "", "no node could send to another")
	}
	p.add(category, "the nodes reach each other's ports", ports...)
	p.add(category, "their clocks agree", clocks...)
}

// Targets returns which nodes each node of a cluster sends to: those of its own and of the other clusters,
// all of them in small clusters, and otherwise most of each cluster, so that every node is sent to.
func Targets(counts []int, cluster, node, most int) (out [][2]int) {
	for c, n := range counts {
		for k := range min(n, most) {
			to := (node + k) % n
			if c != cluster || to != node {
				out = append(out, [2]int{c, to})
			}
		}
	}
	return out
}
