package object

import (
	"cmp"
	"maps"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"strait.io/strait/clustermesh"
	"strait.io/strait/clustermesh/policy"
	"strait.io/strait/internal/problem"
)

// Policy holds what Local reads of a ServicePolicy.
type Policy struct {
	ID
	kind     string // as Problems name it
	created  int64  // in Unix seconds, 0 for none
	spec     policy.Spec
	selector policy.Selector
	mistakes field.ErrorList
	// object is what an API server knows of the object; see PolicyFacts.
	object policy.Facts
	// ports is true if it lists the ports that it is about, of which strait takes all.
	ports bool
}

// title names a policy for people, in one word that a record can carry: "stars", or "shop/cart" for
// a MultiClusterService.
func (p *Policy) title() string {
	if p.Namespace == "" {
		return p.Name
	}
	return p.Namespace + "/" + p.Name
}

func policyFrom(in *policy.Policy) *Policy {
	spec := policy.WithDefaults(in.Spec)
	named := *in
	named.TypeMeta = policy.Type // an API server's answer to a list leaves it out
	return &Policy{
		ID: idOf(in), kind: policy.Kind, created: createdAt(in), spec: spec, selector: policy.SelectorOf(spec, true), mistakes: policy.Validate(named),
		object: policy.Facts{Name: in.Name, Version: in.ResourceVersion, Generation: in.Generation, Was: in.Status},
	}
}

func (p *Policy) insert(o *Objects) { o.Policies = append(o.Policies, p) }

// rule is a policy in force, with what the cluster shares by it.
type rule struct {
	*Policy
	// shares and takes are whether the cluster shares, and whether it gets.
	shares, takes bool
	share         clustermesh.Share
}

// readPolicies sorts the policies, the oldest first, and reports what is wrong with them. A policy
// with a mistake shares nothing.
func (l *reader) readPolicies(objs Objects) {
	all := make([]*Policy, 0, len(objs.Config.Policies)+len(objs.Policies))
	for i := range objs.Config.Policies {
		all = append(all, policyFrom(&objs.Config.Policies[i]))
	}
	configured := all
	for _, p := range objs.Policies {
		if slices.ContainsFunc(configured, func(q *Policy) bool { return q.title() == p.title() }) {
			l.report.on(p.kind, p.Namespace, p.Name).problem(problem.ObjectRepeated, "metadata.name",
				"replication in the daemon's configuration has a policy of this name: that one is used, this one is not", "keep one of the two")
			continue
		}
		all = append(all, p)
	}
	sorted := slices.SortedFunc(slices.Values(all), func(a, b *Policy) int {
		return cmp.Or(cmp.Compare(a.created, b.created), strings.Compare(a.title(), b.title()))
	})
	for _, p := range sorted {
		o := l.report.on(p.kind, p.Namespace, p.Name)
		for _, m := range p.mistakes {
			o.problem(problem.ValueInvalid, m.Field, m.ErrorBody()+": the policy shares nothing", "correct it, here and in the other clusters that have it")
		}
		if len(p.mistakes) > 0 || l.own == "" {
			continue
		}
		if p.ports {
			o.warning(problem.ValueInvalid, "spec.ports", "has no effect with as: "+string(p.spec.As)+": not used", "leave it out")
		}
		if objs.Config.ReadOnly && p.spec.As == policy.Mirror && policy.Reaches(p.spec, l.own) {
			o.warning(problem.ValueInvalid, "spec.as", "mirrors are written into an API server, and this cluster has none: it shares its Services, and gets no mirrors",
				"write import or join, or leave this cluster out of spec.to")
		}
		l.policies = append(l.policies, &rule{Policy: p, shares: policy.Shares(p.spec, l.own), takes: policy.Reaches(p.spec, l.own), share: clustermesh.Share{
			Policy: p.title(), As: string(p.spec.As), From: policy.Clusters(p.spec.From), To: policy.Clusters(p.spec.To),
		}})
	}
}

// shares returns what the policies share, sorted by their names. The exports and global services
// must have been read.
func (l *reader) shares() (out []clustermesh.Share) {
	for _, r := range l.policies {
		out = append(out, r.share)
	}
	slices.SortFunc(out, func(a, b clustermesh.Share) int { return strings.Compare(a.Policy, b.Policy) })
	return out
}

// selected reports whether a rule selects a Service that can be shared. It counts, and notes why
// one that is selected cannot be.
func (l *reader) selected(r *rule, s *Service) bool {
	machinery := s.derivedFor != "" || s.labels[LabelManagedBy] == ManagedBy || s.elsewhere()
	if machinery || !r.selector.Selects(s.Namespace, s.Name, s.labels) {
		return false
	}
	r.share.Selected++
	name := s.service()
	if why := l.stays(name); why != "" {
		r.share.Skip(name, policy.Barred, why)
		return false
	}
	if s.traits.Value().kind == corev1.ServiceTypeExternalName {
		r.share.Skip(name, policy.ExternalName, "its type is ExternalName, so it has no endpoints")
		return false
	}
	if bad := validation.IsDNS1123Label(s.Name); len(bad) > 0 {
		r.share.Skip(name, policy.InvalidName, bad[0])
		return false
	}
	return true
}

// usable reads a Service that a rule selects. What keeps it from being shared is noted in the rule.
// It is not reported as a Problem: the policy selects many Services and need not mean this one.
func (l *reader) usable(r *rule, s *Service) (clustermesh.Export, bool) {
	found := report{unread: l.report.unread}
	e, ok := readService(s, found.on("Service", s.Namespace, s.Name))
	if !ok {
		why := "no port of it can be used"
		if len(found.problems) > 0 {
			why = found.problems[len(found.problems)-1].Message
		}
		r.share.Skip(s.service(), policy.NotSupported, why)
		return e, false
	}
	l.report.problems = append(l.report.problems, found.problems...)
	return e, true
}

// exportsByPolicy returns the exports of the Services that policies share as imports, sorted. Those
// with a wish of their own are shared already. If several policies share one, the clusters of all
// get it.
func (l *reader) exportsByPolicy(wished map[clustermesh.ServiceName]bool) (out []clustermesh.Export) {
	rules := slices.DeleteFunc(slices.Clone(l.policies), func(r *rule) bool { return r.spec.As != policy.Import || !r.shares })
	if len(rules) == 0 {
		return nil
	}
	for _, s := range l.services {
		var e *clustermesh.Export
		for _, r := range rules {
			switch {
			case !l.selected(r, s):
			case wished[s.service()]:
				r.share.Shared++
			case e == nil:
				e = l.exportByPolicy(r, s)
			default:
				l.extend(e, r, s)
			}
		}
		if e != nil {
			out = append(out, *e)
		}
	}
	return out
}

// exportByPolicy returns the export of a Service that a rule shares, or nil.
func (l *reader) exportByPolicy(r *rule, s *Service) *clustermesh.Export {
	e, ok := l.usable(r, s)
	if !ok {
		return nil
	}
	r.share.Shared++
	// A policy can be older than what it shares, and the export is not.
	e.Service, e.Created, e.Policy, e.To = s.service(), max(r.created, s.created), r.title(), r.share.To
	e.Labels, e.Annotations = r.copied(s)
	e.Routing = readRouting(noted{{s.annotations, l.report.on("Service", s.Namespace, s.Name)}})
	return &e
}

// extend adds the clusters of another rule that shares the same Service.
func (l *reader) extend(e *clustermesh.Export, r *rule, s *Service) {
	if labels, annotations := r.copied(s); !maps.Equal(e.Labels, labels) || !maps.Equal(e.Annotations, annotations) {
		r.share.Skip(e.Service, policy.Conflict, e.Policy+" is older and shares it with other labels or annotations")
		return
	}
	r.share.Shared++
	e.To = union(e.To, r.share.To)
}

// mirrorsByPolicy returns the Services that policies share under plain names, one for each policy,
// sorted.
func (l *reader) mirrorsByPolicy() (out []clustermesh.Export) {
	rules := slices.DeleteFunc(slices.Clone(l.policies), func(r *rule) bool { return r.spec.As != policy.Mirror || !r.shares })
	if len(rules) == 0 {
		return nil
	}
	for _, s := range l.services {
		for _, r := range rules {
			if !l.selected(r, s) {
				continue
			}
			e, ok := l.usable(r, s)
			if !ok {
				continue
			}
			r.share.Shared++
			e.Service, e.Created, e.Policy, e.To = s.service(), s.created, r.title(), r.share.To
			e.Labels = r.sharable(s, "labels", policy.Copied(s.labels, r.spec.Copy.Labels, policy.Portable))
			e.Annotations = r.sharable(s, "annotations", policy.CopiedAnnotations(s.annotations, r.spec.Copy.Annotations))
			if r.spec.Endpoints == policy.ClusterIP {
				e.IPs = clusterIPs(s, l.report.on("Service", s.Namespace, s.Name))
			}
			out = append(out, e)
		}
	}
	return out
}

// sharable returns labels or annotations of a Service if a record can carry them, nil otherwise or
// if there are none.
func (r *rule) sharable(s *Service, what string, m map[string]string) map[string]string {
	if len(m) == 0 {
		return nil
	}
	if err := clustermesh.CheckExported(m); err != nil {
		r.share.Skip(s.service(), policy.NotSupported, "it is shared without its "+what+": "+err.Error())
		return nil
	}
	return m
}

// nothing is the choice of keys to copy where none is copied by default.
func nothing(string) bool { return false }

// Taking returns the policies by which a cluster makes objects for other clusters' Services:
// mirrors, or namespaces for imports. The oldest is first.
func Taking(objs Objects) (out []policy.Policy) {
	l := newReader(Objects{Config: objs.Config, Properties: objs.Properties, Policies: objs.Policies})
	l.readPolicies(objs)
	for _, r := range l.policies {
		if r.spec.As != policy.Join && r.takes {
			p := policy.Policy{TypeMeta: policy.Type, Spec: r.spec}
			p.Name = r.Name
			out = append(out, p)
		}
	}
	return out
}

// PolicyFacts returns what is known of each ServicePolicy in the API server. Shares are those that
// Local returns for the same objects.
func PolicyFacts(objs Objects, shares []clustermesh.Share) (out []policy.Facts) {
	for _, p := range objs.Policies {
		if p.kind != policy.Kind {
			continue
		}
		f := p.object
		f.Spec, f.Mistakes = p.spec, p.mistakes
		f.Configured = slices.ContainsFunc(objs.Config.Policies, func(q policy.Policy) bool { return q.Name == p.Name })
		if i := slices.IndexFunc(shares, func(s clustermesh.Share) bool { return s.Policy == p.Name }); i >= 0 && !f.Configured {
			f.Share = &shares[i]
		}
		out = append(out, f)
	}
	return out
}

// copied returns the labels and annotations of a Service that a rule exports: those that it names,
// as a ServiceExport names those that it exports.
func (r *rule) copied(s *Service) (labels, annotations map[string]string) {
	return r.sharable(s, "labels", policy.Copied(s.labels, r.spec.Copy.Labels, nothing)),
		r.sharable(s, "annotations", policy.CopiedAnnotations(s.annotations, r.spec.Copy.Annotations))
}

// union returns the clusters of both lists. Nil stands for all.
func union(a, b []clustermesh.ClusterName) []clustermesh.ClusterName {
	if a == nil || b == nil {
		return nil
	}
	return slices.Compact(slices.Sorted(slices.Values(slices.Concat(a, b))))
}

// joined returns the global service that policies make of a Service, and what the Service itself
// says, nil if no policy does. The policies that share it decide who may use its endpoints; those
// that it gets backends by, whose its clients use.
func (l *reader) joined(s *Service) (g clustermesh.Global, says *clustermesh.Export, takes bool) {
	g.Service = s.service()
	for _, r := range l.policies {
		if r.spec.As != policy.Join || !r.shares && !r.takes || !l.selected(r, s) {
			continue
		}
		e, ok := l.usable(r, s)
		if !ok {
			continue
		}
		says = &e
		if r.shares {
			r.share.Shared++
			if !g.Shared {
				g.Shared, g.To = true, r.share.To
			} else {
				g.To = union(g.To, r.share.To)
			}
		}
		if r.takes {
			r.share.Joined++
			if !takes {
				takes, g.From = true, r.share.From
			} else {
				g.From = union(g.From, r.share.From)
			}
		}
		g.Policy = cmp.Or(g.Policy, r.title())
	}
	return g, says, takes
}
