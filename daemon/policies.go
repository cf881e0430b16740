package daemon

import (
	"slices"

	"strait.io/strait/clustermesh"
	"strait.io/strait/clustermesh/policy"
	"strait.io/strait/daemon/api"
)

// PolicyList lists the policies of this cluster with what they share; nil before the first moment.
func (d *Daemon) PolicyList() *api.PolicyList {
	m := d.now()
	if m == nil {
		return nil
	}
	local, _ := d.source.Local()
	return api.NewPolicyList(d.viewpoint(m), policies(local.Shares, m.state, d.self().Cluster, d.kube.present()))
}

// policies returns what a cluster's policies share, what they get from others, and what the clusters'
// leaders have made of it. Without an API server, no leader makes anything: what others share counts.
func policies(shares []clustermesh.Share, s clustermesh.State, own clustermesh.ClusterName, written bool) (out []api.Policy) {
	others := policy.SharedByOthers(s, own)
	for _, x := range shares {
		p := api.Policy{
			Name: x.Policy, As: x.As, From: text(x.From), To: text(x.To), Selected: x.Selected, Shared: x.Shared, Joined: x.Joined,
			SkippedMore: x.SkippedMore, Others: others[x.Policy],
		}
		for _, k := range x.Skipped {
			p.Skipped = append(p.Skipped, api.SkippedService{Service: k.Service.String(), Reason: k.Reason, Message: k.Message})
		}
		for _, c := range s.Clusters() {
			r, ok := resultIn(s, c, x.Policy)
			switch {
			case c == own && !written && x.As == string(policy.Import):
				p.Imported = len(p.Others)
			case c == own:
				p.Mirrored, p.Imported, p.SkippedMore = r.Mirrored, r.Imported, p.SkippedMore+r.SkippedMore
				p.Skipped = append(p.Skipped, skipped(r)...)
			case ok:
				p.Elsewhere = append(p.Elsewhere, api.PolicyElsewhere{
					Cluster: string(c), Mirrored: r.Mirrored, Imported: r.Imported, Skipped: skipped(r), SkippedMore: r.SkippedMore,
				})
			}
		}
		out = append(out, p)
	}
	return out
}

// resultIn returns the result of a policy that a cluster's leader published.
func resultIn(s clustermesh.State, c clustermesh.ClusterName, policy string) (clustermesh.PolicyResult, bool) {
	all := s.Records.Get(clustermesh.Origin{Cluster: c}).Content.Results
	i := slices.IndexFunc(all, func(r clustermesh.PolicyResult) bool { return r.Policy == policy })
	if i < 0 {
		return clustermesh.PolicyResult{}, false
	}
	return all[i], true
}

func skipped(r clustermesh.PolicyResult) (out []api.SkippedService) {
	for _, k := range r.Skipped {
		out = append(out, api.SkippedService{Service: k.Source, Reason: k.Reason, Message: k.Message})
	}
	return out
}

// MirrorOf returns the policy by which a Service of this cluster is a mirror, and its sources.
func (d *Daemon) MirrorOf(service string) (by string, sources []string) {
	m := d.now()
	if m == nil {
		return "", nil
	}
	return policy.MirrorOf(d.kube.policies(), m.state, d.self().Cluster, service)
}

// sharedBy returns the policies behind imports, and behind global services, as "POLICY of CLUSTER".
func (v viewer) sharedBy() (exports, globals map[clustermesh.ServiceName][]string) {
	exports, globals = map[clustermesh.ServiceName][]string{}, map[clustermesh.ServiceName][]string{}
	for _, c := range v.state.Clusters() {
		content := v.state.Records.Get(clustermesh.Origin{Cluster: c}).Content
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
