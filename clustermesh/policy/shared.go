package policy

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"strait.io/strait/clustermesh"
)

// SharedByOthers returns the Services that other clusters share with a cluster, by policy, sorted.
func SharedByOthers(s clustermesh.State, own clustermesh.ClusterName) map[string][]string {
	out := map[string][]string{}
	note := func(policy string, service clustermesh.ServiceName, c clustermesh.ClusterName) {
		if policy != "" {
			out[policy] = append(out[policy], fmt.Sprintf("%s of %s", service, c))
		}
	}
	joins := map[clustermesh.ServiceName]clustermesh.Global{}
	for _, g := range s.Records.Get(clustermesh.Origin{Cluster: own}).Content.Globals {
		joins[g.Service] = g
	}
	for _, c := range s.Clusters() {
		if c == own {
			continue
		}
		content := s.Records.Get(clustermesh.Origin{Cluster: c}).Content
		for _, e := range s.Imported(own, c) {
			note(e.Policy, e.Service, c)
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

// MirrorOf finds the oldest policy that makes a Service. Others that make the same merge into it.
func MirrorOf(taking []Policy, s clustermesh.State, own clustermesh.ClusterName, service string) (by string, sources []string) {
	for _, p := range taking {
		for _, c := range s.Clusters() {
			if p.Spec.As != Mirror || c == own || !Shares(p.Spec, c) {
				continue
			}
			for _, e := range s.Records.Get(clustermesh.Origin{Cluster: c}).Content.Mirrors {
				expand := func(template string) string {
					return Expand(template, e.Service.Name, e.Service.Namespace, string(c))
				}
				if e.Policy == p.Name && e.For(own) && expand(p.Spec.Namespace)+"/"+expand(p.Spec.Name) == service {
					by, sources = cmp.Or(by, p.Name), append(sources, string(c)+"/"+e.Service.String())
				}
			}
		}
	}
	return by, sources
}
