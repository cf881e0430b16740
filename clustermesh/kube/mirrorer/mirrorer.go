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
	"log/slog"
	"maps"
	"slices"
	"sync"
	"time"

	"github.com/go-logr/logr"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/informers"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/cache"
	"k8s.io/klog/v2"

	"strait.io/strait/clustermesh"
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
	// manager is the field manager of what it writes.
	manager = "strait"
	// quiet and patience gather changes that come together.
	quiet, patience = 50 * time.Millisecond, time.Second
	// stint bounds how long a pass writes before it looks again. Thousands of new mirrors take minutes,
	// and those that are there follow their sources meanwhile.
	stint = 5 * time.Second
	// again is how often a pass is done although nothing changed: what failed is tried again.
	again = 15 * time.Second
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

// Config says where to write.
type Config struct {
	REST *rest.Config
	// Leading is called right before each write; nothing is written while it returns false.
	Leading func() bool
	Log     *slog.Logger
}

// Mirrorer writes one cluster's mirrors. Make it with New; Run it for as long as the daemon leads.
type Mirrorer struct {
	client  kubernetes.Interface
	dynamic dynamic.Interface
	leading func() bool
	log     *slog.Logger
	changed notify.Signal // asks for another pass
	told    notify.Signal // Results changed
	// retired and fresh are owned by Run. Fresh are mirrors that were created and that the watch has not shown yet.
	retired Retired
	fresh   mirrors
	// taken are the names of Services that are no mirrors, with the time when one was met; owned by Run.
	taken map[[2]string]time.Time

	mu       sync.Mutex
	view     func() View // nil until one was submitted
	problems []clustermesh.Problem
	results  []clustermesh.PolicyResult
}

// New makes a Mirrorer. It opens no connection until Run.
func New(c Config) (*Mirrorer, error) {
	config := rest.CopyConfig(c.REST)
	config.QPS = -1 // the API server says how much it can take
	client, err := kubernetes.NewForConfig(config)
	if err != nil {
		return nil, err
	}
	statuses, err := dynamic.NewForConfig(config)
	if err != nil {
		return nil, err
	}
	return &Mirrorer{client: client, dynamic: statuses, leading: c.Leading, log: c.Log, changed: notify.New(), told: notify.New()}, nil
}

// Submit says what is known now. It calls view when it needs it: what all clusters offer is large.
func (m *Mirrorer) Submit(view func() View) {
	m.mu.Lock()
	m.view = view
	m.mu.Unlock()
	m.changed.Poke()
}

// Problems are those of the last pass.
func (m *Mirrorer) Problems() []clustermesh.Problem {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.problems
}

// Results says what the cluster has made by each policy, sorted by policy. It is nil before the first
// pass of a term.
func (m *Mirrorer) Results() []clustermesh.PolicyResult {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.results
}

// Changed receives after Results changed. It is for one receiver.
func (m *Mirrorer) Changed() <-chan struct{} { return m.told }

// Run writes until ctx is done, and begins when all mirrors have been read.
func (m *Mirrorer) Run(ctx context.Context) error {
	ctx = klog.NewContext(ctx, logr.FromSlogHandler(m.log.Handler()))
	defer m.forget()
	shared := informers.NewSharedInformerFactoryWithOptions(m.client, 0, informers.WithTweakListOptions(func(o *metav1.ListOptions) {
		o.LabelSelector = mirror.LabelSet + "=" + set
	}))
	poke := cache.ResourceEventHandlerFuncs{
		AddFunc: func(any) { m.changed.Poke() }, UpdateFunc: func(any, any) { m.changed.Poke() }, DeleteFunc: func(any) { m.changed.Poke() },
	}
	services, slices := shared.Core().V1().Services(), shared.Discovery().V1().EndpointSlices()
	for _, i := range []cache.SharedIndexInformer{services.Informer(), slices.Informer()} {
		if _, err := i.AddEventHandler(poke); err != nil {
			return err
		}
	}
	shared.StartWithContext(ctx)
	defer shared.Shutdown()
	if !cache.WaitForCacheSync(ctx.Done(), services.Informer().HasSynced, slices.Informer().HasSynced) {
		return nil
	}
	var took time.Duration // of what a pass decides
	for more := true; more; more = notify.Await(ctx, m.changed, again, max(quiet, took), max(patience, 5*took)) {
		m.mu.Lock()
		view := m.view
		m.mu.Unlock()
		if view == nil || ctx.Err() != nil {
			continue
		}
		start := time.Now()
		v := view()
		have := mirror.Cluster{ID: string(v.Cluster), Namespaces: v.Namespaces, Barred: v.Barred}
		var err1, err2 error
		have.Services, err1 = services.Lister().List(labels.Everything())
		have.Slices, err2 = slices.Lister().List(labels.Everything())
		if err1 == nil && err2 == nil {
			plan, ops := m.decide(v, &have)
			took = time.Since(start)
			m.pass(ctx, v, have, plan, ops)
		}
	}
	return nil
}

// forget drops what is out of date when the next term begins, or is for the next leader to say.
func (m *Mirrorer) forget() {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.view, m.problems, m.results, m.fresh, m.retired, m.taken = nil, nil, nil, nil, nil, nil
}

// decide returns what there should be, and the writes for that.
func (m *Mirrorer) decide(v View, have *mirror.Cluster) (mirror.Plan, []written.Op) {
	now := time.Now()
	have.Taken = m.names(now)
	plan := mirror.Wanted(set, v.Policies, v.Clusters, *have)
	return plan, m.retired.Due(mirror.Diff(set, plan, *have, v.Unknown), now)
}

// pass writes what is missing. After a stint without a failure the next pass goes on, and the last one says
// what has been made. After a failure the next pass would begin with the same, so this one goes on.
func (m *Mirrorer) pass(ctx context.Context, v View, have mirror.Cluster, plan mirror.Plan, ops []written.Op) {
	var problems []clustermesh.Problem
	var refused []mirror.Skipped
	skipped, there := plan.Skipped, inventory(have.Services)
	m.fresh = m.fresh.without(there)
	maps.Copy(there, m.fresh)
	var held written.Held
	start, failing := time.Now(), false
	for _, o := range ops {
		if ctx.Err() != nil || !m.leading() {
			return
		}
		if !failing && time.Since(start) > stint {
			m.changed.Poke()
			return
		}
		if held.Back(o) {
			continue
		}
		err := Do(ctx, m.client, manager, o)
		if err != nil {
			failing = true
			held.Failed(o)
		}
		switch {
		case err == nil:
			there.did(o)
			if o.Verb == written.Create {
				m.fresh.did(o)
			}
		case ctx.Err() != nil:
		case o.Verb == written.Create && o.Service() != nil && apierrors.IsAlreadyExists(err):
			if !m.fresh.has(o.Service()) {
				skipped = append(skipped, taken(o.Service()))
				m.meet(o.Service(), time.Now())
			}
		default:
			if apierrors.IsForbidden(err) || apierrors.IsInvalid(err) {
				refused = append(refused, refusal(o, err)...)
			}
			problems = append(problems, failed(o.String(), err)...)
		}
	}
	for _, s := range skipped {
		problems = append(problems, left(s))
	}
	results := mirror.Results(v.Policies, plan, there.made(), append(skipped, refused...))
	problems = append(problems, m.writeStatuses(ctx, v, results)...)
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.results == nil || !slices.EqualFunc(results, m.results, clustermesh.PolicyResult.Equal) {
		m.told.Poke()
	}
	m.problems, m.results = bounded(problems), results
}

// refusal returns the sources of a mirror that the API server refuses. The Problem of the write says it
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
func (m *Mirrorer) meet(s *corev1.Service, now time.Time) {
	if m.taken == nil {
		m.taken = map[[2]string]time.Time{}
	}
	m.taken[key(s)] = now
}

// names returns the names that count as taken.
func (m *Mirrorer) names(now time.Time) map[string]bool {
	out := map[string]bool{}
	for k, met := range m.taken {
		if now.Sub(met) >= again { // the mirrorer watches only mirrors, so it has to try
			delete(m.taken, k)
			continue
		}
		out[k[0]+"/"+k[1]] = true
	}
	return out
}

// taken says that there is a Service of a mirror's name.
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

// failed returns the Problem of a write that failed, none if the next pass does better.
func failed(write string, err error) []clustermesh.Problem {
	if Passes(err) {
		return nil
	}
	return []clustermesh.Problem{{
		Code: problem.WriteRefused, Object: write, Message: err.Error(), Try: "it is tried again; see what the API server says",
	}}
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
