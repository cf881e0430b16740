package daemon

import (
	"fmt"
	"slices"
	"strings"

	"strait.io/strait/clustermesh"
	"strait.io/strait/daemon/api"
)

// PolicyList lists the policies of this cluster with what they share; nil before the first moment.
func (d *Daemon) PolicyList() *api.PolicyList {
	m := d.now()
	if m == nil {
		return nil
	}
	local, _ := d.source.Local()
	var mirrored map[string]int
	if d.kube != nil {
		mirrored = d.kube.mirrors.Made()
	}
	return api.NewPolicyList(d.viewpoint(m), policies(local.Shares, m.state, d.self().Cluster, mirrored))
}

// policies returns what a cluster's policies share, and what they get from others. Mirrored is how
// many mirrors there are by each; only the leader knows.
func policies(shares []clustermesh.Share, s clustermesh.State, own clustermesh.ClusterName, mirrored map[string]int) (out []api.Policy) {
	others := sharedByOthers(s, own)
	for _, x := range shares {
		p := api.Policy{
			Name: x.Policy, As: x.As, From: text(x.From), To: text(x.To), Selected: x.Selected, Shared: x.Shared, Joined: x.Joined,
			SkippedMore: x.SkippedMore, Others: others[x.Policy], Mirrored: mirrored[x.Policy],
		}
		for _, k := range x.Skipped {
			p.Skipped = append(p.Skipped, api.SkippedService{Service: k.Service.String(), Reason: k.Reason, Message: k.Message})
		}
		out = append(out, p)
	}
	return out
}

// sharedByOthers returns the Services that other clusters share with a cluster, by policy, sorted.
func sharedByOthers(s clustermesh.State, own clustermesh.ClusterName) map[string][]string {
	out := map[string][]string{}
	note := func(policy string, service clustermesh.ServiceName, c clustermesh.ClusterName) {
		if policy != "" {
			out[policy] = append(out[policy], fmt.Sprintf("%s of %s", service, c))
		}
	}
	joins := map[clustermesh.ServiceName]clustermesh.Global{}
	for _, g := range s.Records[clustermesh.Origin{Cluster: own}].Content.Globals {
		joins[g.Service] = g
	}
	for _, c := range s.Clusters() {
		if c == own {
			continue
		}
		content := s.Records[clustermesh.Origin{Cluster: c}].Content
		for _, e := range content.Exports {
			if e.For(own) {
				note(e.Policy, e.Service, c)
			}
		}
		for _, e := range content.Mirrors {
			if e.For(own) {
				note(e.Policy, e.Service, c)
			}
		}
		for _, g := range content.Globals {
			if here, joined := joins[g.Service]; joined && len(here.IPs) > 0 && g.Offers(own) && here.Takes(c) {
				note(g.Policy, g.Service, c)
			}
		}
	}
	for _, list := range out {
		slices.SortFunc(list, strings.Compare)
	}
	return out
}

// sharedBy returns the policies behind imports, and behind global services, as "POLICY of CLUSTER".
func (v viewer) sharedBy() (exports, globals map[clustermesh.ServiceName][]string) {
	exports, globals = map[clustermesh.ServiceName][]string{}, map[clustermesh.ServiceName][]string{}
	for _, c := range v.state.Clusters() {
		content := v.state.Records[clustermesh.Origin{Cluster: c}].Content
		for _, e := range content.Exports {
			if e.Policy != "" && e.For(v.self.Cluster) {
				exports[e.Service] = append(exports[e.Service], e.Policy+" of "+string(c))
			}
		}
		for _, g := range content.Globals {
			if g.Policy != "" && (c == v.self.Cluster || g.Offers(v.self.Cluster)) {
				globals[g.Service] = append(globals[g.Service], g.Policy+" of "+string(c))
			}
		}
	}
	return exports, globals
}

func text(list []clustermesh.ClusterName) (out []string) {
	for _, c := range list {
		out = append(out, string(c))
	}
	return out
}
