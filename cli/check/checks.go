package check

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"

	"strait.io/strait/daemon/api"
	"strait.io/strait/datapath"
	"strait.io/strait/internal/problem"
)

func (c *checker) daemons() {
	const category = "daemons"
	c.add(category, "every daemon answers", c.silent()...)
	c.add(category, "every daemon is ready", c.notReady()...)
	most := c.mostCommonVersion()
	upgrade := "bring all to one version: strait upgrade --context NAME"
	c.add(category, "the daemons have one version, which is this program's", c.each(func(_ Node, s *api.Status) []Finding {
		switch {
		case s.Version != most:
			return found(Warning, upgrade, "straitd is %s, and most others are %s", s.Version, most)
		case s.Version != c.client:
			return found(Warning, upgrade, "straitd is %s, and this program %s", s.Version, c.client)
		}
		return nil
	})...)
}

// silent finds the daemons that do not answer.
func (c *checker) silent() (out []Finding) {
	for _, n := range c.nodes {
		if n.Status != nil {
			continue
		}
		f := Finding{Nodes: []string{n.Name}, Message: n.Error, Try: n.Try}
		if p, is := c.reportedOf(n); is { // others know why
			f.Code, f.Message, f.Try = p.Code, p.Finding(), p.Try
		}
		f.state = Unknown
		out = append(out, f)
	}
	return out
}

func (c *checker) notReady() []Finding {
	return c.each(func(_ Node, s *api.Status) []Finding {
		if s.Ready && len(s.Waiting) == 0 {
			return nil
		}
		state := Warning
		if !s.Ready {
			state = Failed
		}
		return found(state, "wait for it: strait status --wait", "waits for %s", cmp.Or(strings.Join(s.Waiting, ", "), "the first plan to be applied"))
	})
}

// unheard are the codes of the problems with who is not heard.
var unheard = []problem.Code{problem.ClusterHeld, problem.ClusterQuiet, problem.NodeDead, problem.NodeQuiet, problem.NodeHeld}

// reportedOf returns what another daemon reports of a node that does not answer.
func (c *checker) reportedOf(n Node) (problem.Problem, bool) {
	_, name, _ := strings.Cut(n.Name, "/")
	for _, o := range c.nodes {
		if o.Status == nil {
			continue
		}
		for _, p := range o.Status.Problems {
			if slices.Contains(unheard, p.Code) && (p.Ref == problem.Node(n.Cluster, name) || p.Ref == problem.Cluster(n.Cluster)) {
				return p, true
			}
		}
	}
	return problem.Problem{}, false
}

// mostCommonVersion returns the version that most daemons have, and of those the first in order.
func (c *checker) mostCommonVersion() (most string) {
	count := map[string]int{}
	for _, n := range c.nodes {
		if n.Status != nil {
			count[n.Status.Version]++
		}
	}
	for _, v := range slices.Sorted(maps.Keys(count)) {
		if count[v] > count[most] {
			most = v
		}
	}
	return most
}

func (c *checker) kernels() {
	c.add("kernel", "it has every feature that strait can use", c.each(func(_ Node, s *api.Status) []Finding {
		return lacking(s.Datapath.Features)
	})...)
}

// lacking finds the features that a kernel does not have.
func lacking(all []datapath.Feature) (out []Finding) {
	for _, f := range all {
		if f.OK {
			continue
		}
		since := ""
		if f.Since != "" {
			since = ", which Linux has since " + f.Since
		}
		if f.Without == "" {
			out = append(out, found(Failed, "use a newer kernel", "no %s%s: strait cannot run without it", f.Name, since)...)
		} else {
			out = append(out, found(Warning, "", "no %s%s: %s", f.Name, since, f.Without)...)
		}
	}
	return out
}

func (c *checker) datapaths() {
	const category = "data path"
	c.add(category, "the socket hooks are attached", c.each(func(_ Node, s *api.Status) []Finding {
		if s.Datapath.Attached {
			return nil
		}
		return found(Failed, "see the log of straitd on that node", "not attached: connections bypass strait")
	})...)
	c.add(category, "no other program decides first", c.either([]problem.Code{problem.HooksShared}, nil)...)
	c.add(category, "the kernel's maps have room", c.either([]problem.Code{problem.MapFull, problem.MapNearlyFull}, nil)...)
}

// tunnelCodes are those of the problems with what tunnels carry.
var tunnelCodes = []problem.Code{problem.TunnelNever, problem.TunnelSilent, problem.TunnelOneWay, problem.TunnelLossy,
	problem.TunnelNarrow, problem.TunnelsAllSilent, problem.TunnelsUnprobed}

// clockCodes are those of the problems with clocks, and of what is refused because of them.
var clockCodes = []problem.Code{problem.ClocksDiffer, problem.ClockDiffers, problem.ClockBehind, problem.ClockSetBack, problem.RecordAhead}

func (c *checker) clusterset() {
	const category = "clusterset"
	c.add(category, "every node hears every cluster", c.either(unheard[:2], func(_ Node, s *api.Status) (out []Finding) {
		for _, o := range s.Clusters {
			if o.State == api.Held || o.State == api.Quiet {
				out = append(out, found(Failed, "see strait members, and whether the gossip port is open between the clusters: docs/ports.md",
					"cluster %s is %s: none of its daemons is heard, and what it last published is kept", o.Name, o.State)...)
			}
		}
		return out
	})...)
	c.add(category, "every node of every cluster is alive", c.either(unheard[2:], func(_ Node, s *api.Status) (out []Finding) {
		for _, o := range s.Clusters {
			if heard := o.State == api.Here || o.State == api.Joined; heard && o.Alive < o.Nodes {
				out = append(out, found(Warning, "see which: strait nodes", "%d of %s of cluster %s are alive, and %d dead", o.Alive, api.Count(o.Nodes, "node"), o.Name, o.Dead)...)
			}
		}
		return out
	})...)
	c.add(category, "the tunnels carry packets", c.either(tunnelCodes, func(_ Node, s *api.Status) (out []Finding) {
		for _, o := range s.Clusters {
			if o.Tunnels == nil || slices.ContainsFunc(s.Problems, func(p problem.Problem) bool { return slices.Contains(unheard, p.Code) && p.Ref.Concerns(o.Name) }) {
				continue // the tunnels to a machine that is off carry nothing
			}
			for _, state := range slices.Sorted(maps.Keys(o.Tunnels.States)) {
				bad := Failed
				switch state {
				case "carrying", "unknown":
					continue
				case "returning": // it carries packets, and lately carried none
					bad = Warning
				}
				out = append(out, found(bad, "see which and why: strait nodes", "%s to cluster %s: %s", api.Count(o.Tunnels.States[state], "tunnel"), o.Name, state)...)
			}
		}
		return out
	})...)
	c.add(category, "the clocks agree", c.either(clockCodes, nil)...)
	c.add(category, "every Service has something behind it", c.either([]problem.Code{problem.ServiceUnserved}, nil)...)
	reported := c.either([]problem.Code{problem.NobodyLeads}, nil)
	c.add(category, "each cluster has a leader", append(reported, c.leaders()...)...)
	c.add(category, "only pinned clusters are trusted", c.either([]problem.Code{problem.EverybodyTrusted}, func(_ Node, s *api.Status) []Finding {
		if s.Authority == "" || s.Authority == api.AuthorityPinned {
			return nil
		}
		return found(Warning, "pin the clusters: docs/security.md", "every holder of the gossip key is trusted")
	})...)
}

// leaders finds clusters of which every node answered and none leads.
func (c *checker) leaders() (out []Finding) {
	leads, whole := map[string]int{}, map[string]bool{}
	for _, n := range c.nodes {
		if n.Cluster == "" {
			continue
		}
		if _, seen := whole[n.Cluster]; !seen {
			whole[n.Cluster] = true
		}
		whole[n.Cluster] = whole[n.Cluster] && n.Status != nil
		if n.Status != nil && n.Status.Leader {
			leads[n.Cluster]++
		}
	}
	for _, cluster := range slices.Sorted(maps.Keys(whole)) {
		if whole[cluster] && leads[cluster] == 0 && c.asked(cluster) > 1 && !c.leaderless(cluster) {
			out = append(out, found(Failed, "see the logs of the daemons, and whether the cluster's API server answers", "no node of cluster %s leads it: what it exports does not change", cluster)...)
		}
	}
	return out
}

// leaderless reports whether a daemon of the cluster reports that none leads.
func (c *checker) leaderless(cluster string) bool {
	return slices.ContainsFunc(c.nodes, func(n Node) bool {
		return n.Cluster == cluster && n.Status != nil &&
			slices.ContainsFunc(n.Status.Problems, func(p problem.Problem) bool { return p.Code == problem.NobodyLeads })
	})
}

func (c *checker) asked(cluster string) (n int) {
	for _, o := range c.nodes {
		if o.Cluster == cluster {
			n++
		}
	}
	return n
}

// groups are the kinds of problems, by the first digit of their code, as docs/problems.md has them.
var groups = []struct {
	digit byte
	title string
}{
	{'1', "objects"}, {'2', "clusters and nodes"}, {'3', "the socket load balancer"}, {'4', "tunnels and routes"},
	{'5', "gossip and replication"}, {'6', "the API server"}, {'7', "DNS"}, {'8', "the daemons"},
}

// problems are what the daemons report, without what the other checks have.
func (c *checker) problems() {
	for _, g := range groups {
		c.add("problems", "no problems with "+g.title, c.each(func(_ Node, s *api.Status) (out []Finding) {
			for _, p := range s.Problems {
				if len(p.Code) > 3 && p.Code[3] == g.digit && !slices.Contains(c.taken, p.Code) {
					out = append(out, reported(p))
				}
			}
			return out
		})...)
	}
}

func reported(p problem.Problem) Finding {
	f := Finding{Code: p.Code, Message: p.Finding(), Try: p.Try, state: Failed}
	if p.Warning {
		f.state = Warning
	}
	if f.Try == "" {
		f.Try = fmt.Sprintf("strait help %s", p.Code)
	}
	return f
}
