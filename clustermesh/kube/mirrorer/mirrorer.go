// Package mirrorer carries out a cluster's ServicePolicies in its API server while this daemon
// leads the cluster: it writes the mirrors of other clusters' Services, the namespaces that policies
// create, and each policy's status.
//
// Inputs are policies, and what other clusters offer; outputs are writes, results and Problems. It is a
// shell around client-go and decides nothing: packages mirror and policy do. It must not know
// gossip or the kernel.
package mirrorer

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"strait.io/strait/clustermesh"
	"strait.io/strait/clustermesh/kube/write"
	"strait.io/strait/clustermesh/object"
	"strait.io/strait/clustermesh/policy"
	"strait.io/strait/clustermesh/policy/mirror"
	"strait.io/strait/clustermesh/written"
	"strait.io/strait/internal/notify"
	"strait.io/strait/internal/problem"
)

const (
	// set is the value of mirror.LabelSet on what this package writes.
	set = object.DaemonsPolicySet
	// maxProblems bounds the Problems of one kind.
	maxProblems = 8
)

// View is what the leader of a cluster knows.
type View struct {
	Cluster  clustermesh.ClusterName
	Policies []policy.Policy // those that make mirrors or imports here
	Objects  []policy.Facts  // those that have a status
	// Clusters are the others whose word is known. Unknown reports whether one's word is not: what
	// came from it stays as it is.
	Clusters []mirror.Cluster
	Unknown  func(cluster string) bool
	// Namespaces are those that exist in the cluster.
	Namespaces map[string]bool
	Barred     clustermesh.Barred
}

// Mirrorer writes one cluster's mirrors. Make it with New; Run it for as long as the daemon leads.
type Mirrorer struct {
	*write.Passes[View]
	work *work
}

// New makes a Mirrorer. It opens no connection until Run.
func New(e *write.Engine) *Mirrorer {
	w := &work{Part: e.Part(written.Mirrors), changed: notify.New()}
	return &Mirrorer{write.NewPasses[View](w.Part, w), w}
}

// Results returns what the cluster has made by each policy, sorted by policy. It is nil before the first
// pass of a term.
func (m *Mirrorer) Results() []clustermesh.PolicyResult {
	m.work.mu.Lock()
	defer m.work.mu.Unlock()
	return m.work.results
}

// Changed receives after Results changed. It is for one receiver.
func (m *Mirrorer) Changed() <-chan struct{} { return m.work.changed }

// work implements write.Work. Run owns all of it but the results.
type work struct {
	*write.Part
	changed notify.Signal // the results changed
	retired mirror.Retired
	// fresh are mirrors that were created and that the watch has not shown yet.
	fresh mirrors
	// taken are the names of Services that are no mirrors, with the time when one was found.
	taken map[[2]string]time.Time
	pass  pass

	mu      sync.Mutex
	results []clustermesh.PolicyResult
}

// pass is what is known of the current pass.
type pass struct {
	plan             mirror.Plan
	there            mirrors
	skipped, refused []mirror.Skipped
	problems         []clustermesh.Problem
}

// Needed implements write.Work.
func (*work) Needed(context.Context, func() View) bool { return true }

// Decide implements write.Work.
func (w *work) Decide(v View, there []metav1.Object, now time.Time) []written.Op {
	have := mirror.Cluster{ID: string(v.Cluster), Namespaces: v.Namespaces, Barred: v.Barred, Taken: w.names(now)}
	for _, o := range there {
		switch o := o.(type) {
		case *corev1.Service:
			have.Services = append(have.Services, o)
		case *discoveryv1.EndpointSlice:
			have.Slices = append(have.Slices, o)
		}
	}
	plan := mirror.Wanted(set, v.Policies, v.Clusters, have)
	w.pass = pass{plan: plan, there: inventory(have.Services), skipped: plan.Skipped}
	w.fresh = w.fresh.without(w.pass.there)
	maps.Copy(w.pass.there, w.fresh)
	return mirror.Sign(w.retired.Due(mirror.Diff(set, plan, have, v.Unknown), now), written.Manager)
}

// Wrote implements write.Work.
func (w *work) Wrote(_ context.Context, o written.Op, err error) {
	p := &w.pass
	switch {
	case err == nil:
		p.there.did(o)
		if o.Verb == written.Create {
			w.fresh.did(o)
		}
	case o.Verb == written.Create && o.Service() != nil && apierrors.IsAlreadyExists(err):
		if !w.fresh.has(o.Service()) {
			p.skipped = append(p.skipped, taken(o.Service()))
			w.meet(o.Service(), time.Now())
		}
	default:
		if apierrors.IsForbidden(err) || apierrors.IsInvalid(err) {
			p.refused = append(p.refused, refusal(o, err)...)
		}
		p.problems = append(p.problems, write.Refused(o.String(), err)...)
	}
}

// Done implements write.Work.
func (w *work) Done(ctx context.Context, v View) []clustermesh.Problem {
	p := &w.pass
	for _, s := range p.skipped {
		p.problems = append(p.problems, left(s))
	}
	results := mirror.Results(v.Policies, p.plan, p.there.made(), append(p.skipped, p.refused...))
	problems := append(p.problems, w.writeStatuses(ctx, v, results)...)
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.results == nil || !slices.EqualFunc(results, w.results, clustermesh.PolicyResult.Equal) {
		w.changed.Poke()
	}
	w.results = results
	return bounded(problems)
}

// Forget implements write.Work.
func (w *work) Forget() {
	w.fresh, w.retired, w.taken, w.pass = nil, nil, nil, pass{}
	w.mu.Lock()
	defer w.mu.Unlock()
	w.results = nil
}

// refusal returns the sources of a mirror that the API server refuses. The Problem of the write reports that
// for all of them.
func refusal(o written.Op, err error) []mirror.Skipped {
	if o.Service() == nil || o.Verb == written.Delete {
		return nil
	}
	return []mirror.Skipped{{
		Policy: o.Service().Labels[mirror.LabelPolicy], Source: o.Service().Annotations[mirror.AnnotationFrom], Reason: policy.Refused, Message: err.Error(),
	}}
}

// meet takes note of a Service that is no mirror.
func (w *work) meet(s *corev1.Service, now time.Time) {
	if w.taken == nil {
		w.taken = map[[2]string]time.Time{}
	}
	w.taken[key(s)] = now
}

// names returns the names that count as taken.
func (w *work) names(now time.Time) map[string]bool {
	out := map[string]bool{}
	for k, met := range w.taken {
		if now.Sub(met) >= write.Again { // the mirrorer watches only mirrors, so it has to try
			delete(w.taken, k)
			continue
		}
		out[k[0]+"/"+k[1]] = true
	}
	return out
}

// taken reports that there is a Service of a mirror's name.
func taken(s *corev1.Service) mirror.Skipped {
	return mirror.Skipped{
		Policy: s.Labels[mirror.LabelPolicy], Source: s.Annotations[mirror.AnnotationFrom], Reason: policy.TargetExists,
		Message: fmt.Sprintf("Service %s/%s is there and is no mirror: it stays as it is", s.Namespace, s.Name),
	}
}

// left returns the Problem of a Service that is left out.
func left(s mirror.Skipped) clustermesh.Problem {
	return clustermesh.Problem{
		Code: problem.PolicySkips, Object: policy.Kind + " " + s.Policy, Field: "spec.select", Warning: true,
		Message: fmt.Sprintf("%s is left out: %s: %s", s.Source, s.Reason, s.Message), Try: "see strait help " + string(problem.PolicySkips),
	}
}

// bounded returns the first Problems of each code, and how many more there are.
func bounded(problems []clustermesh.Problem) (out []clustermesh.Problem) {
	count := map[problem.Code]int{}
	for _, p := range problems {
		if count[p.Code]++; count[p.Code] <= maxProblems {
			out = append(out, p)
		}
	}
	for _, code := range []problem.Code{problem.PolicySkips, problem.WriteRefused} {
		if more := count[code] - maxProblems; more > 0 {
			i := slices.IndexFunc(problems, func(p clustermesh.Problem) bool { return p.Code == code })
			p := problems[i]
			p.Message, p.Object = fmt.Sprintf("%d more for such reasons", more), policy.Kind
			out = append(out, p)
		}
	}
	return out
}
