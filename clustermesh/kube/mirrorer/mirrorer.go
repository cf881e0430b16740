// Package mirrorer writes the mirrors of other clusters' Services into a cluster's API server, while
// this daemon leads its cluster.
//
// Input is what other clusters offer, and by which policies; outputs are writes, and Problems. It is a
// shell around client-go and decides nothing: package mirror does. It must not know gossip or the
// kernel.
package mirrorer

import (
	"context"
	"fmt"
	"log/slog"
	"slices"
	"sync"
	"time"

	"github.com/go-logr/logr"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/client-go/informers"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/cache"
	"k8s.io/klog/v2"

	"strait.io/strait/clustermesh"
	"strait.io/strait/clustermesh/policy"
	"strait.io/strait/clustermesh/policy/mirror"
	"strait.io/strait/internal/notify"
	"strait.io/strait/internal/problem"
)

const (
	// set is the value of mirror.LabelSet on what this package writes.
	set = "daemon"
	// manager is the field manager of what it writes.
	manager = "strait"
	// quiet and patience gather changes that come together.
	quiet, patience = 50 * time.Millisecond, time.Second
	// again is how often a pass is done although nothing changed: what failed is tried again.
	again = 15 * time.Second
	// maxProblems bounds the Problems of one kind.
	maxProblems = 8
)

// View is what the leader of a cluster knows.
type View struct {
	Cluster  clustermesh.ClusterName
	Policies []policy.Policy
	// Clusters are the others whose word is known. Unknown reports whether one's word is not: what came
	// from it stays as it is.
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
	leading func() bool
	log     *slog.Logger
	changed notify.Signal

	mu       sync.Mutex
	view     func() View // nil until one was submitted
	problems []clustermesh.Problem
	made     map[string]int // by policy
}

// New makes a Mirrorer. It opens no connection until Run.
func New(c Config) (*Mirrorer, error) {
	config := rest.CopyConfig(c.REST)
	config.QPS = -1 // the API server says how much it can take
	client, err := kubernetes.NewForConfig(config)
	if err != nil {
		return nil, err
	}
	return &Mirrorer{client: client, leading: c.Leading, log: c.Log, changed: notify.New()}, nil
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

// Made returns how many mirrors the cluster has by a policy.
func (m *Mirrorer) Made() map[string]int {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.made
}

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
	for more := true; more; more = notify.Await(ctx, m.changed, again, quiet, patience) {
		m.mu.Lock()
		view := m.view
		m.mu.Unlock()
		if view == nil || ctx.Err() != nil {
			continue
		}
		v := view()
		have := mirror.Cluster{ID: string(v.Cluster), Namespaces: v.Namespaces, Barred: v.Barred}
		var err1, err2 error
		have.Services, err1 = services.Lister().List(labels.Everything())
		have.Slices, err2 = slices.Lister().List(labels.Everything())
		if err1 == nil && err2 == nil {
			m.pass(ctx, v, have)
		}
	}
	return nil
}

// forget drops what is out of date when the next term begins, or is for the next leader to say.
func (m *Mirrorer) forget() {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.view, m.problems, m.made = nil, nil, nil
}

// pass writes what is missing.
func (m *Mirrorer) pass(ctx context.Context, v View, have mirror.Cluster) {
	plan := mirror.Wanted(set, v.Policies, v.Clusters, have)
	var problems []clustermesh.Problem
	for _, s := range plan.Skipped {
		problems = append(problems, clustermesh.Problem{
			Code: problem.PolicySkips, Object: policy.Kind + " " + s.Policy, Field: "spec.select", Warning: true,
			Message: fmt.Sprintf("%s is left out: %s: %s", s.Source, s.Reason, s.Message), Try: "see strait help " + string(problem.PolicySkips),
		})
	}
	made := map[string]int{}
	for _, x := range plan.Mirrors {
		made[x.Service.Labels[mirror.LabelPolicy]]++
	}
	for _, o := range mirror.Diff(set, plan, have, v.Unknown) {
		if ctx.Err() != nil || !m.leading() {
			return
		}
		if err := Do(ctx, m.client, manager, o); err != nil && ctx.Err() == nil {
			problems = append(problems, failed(o, err)...)
		}
	}
	m.mu.Lock()
	m.problems, m.made = bounded(problems), made
	m.mu.Unlock()
}

// failed returns the Problem of a write that failed, none if the next pass does better.
func failed(o mirror.Op, err error) []clustermesh.Problem {
	switch {
	case o.Verb == mirror.Create && o.Service != nil && apierrors.IsAlreadyExists(err):
		return []clustermesh.Problem{{
			Code: problem.PolicySkips, Object: policy.Kind + " " + o.Service.Labels[mirror.LabelPolicy], Field: "spec.name", Warning: true,
			Message: fmt.Sprintf("%s: Service %s/%s is there and is no mirror: it stays as it is", policy.TargetExists, o.Service.Namespace, o.Service.Name),
			Try:     "give the mirror another name, as in {name}-{cluster}, or delete that Service",
		}}
	case Passes(err):
		return nil
	}
	return []clustermesh.Problem{{
		Code: problem.WriteRefused, Object: o.String(), Message: err.Error(), Try: "it is tried again; see what the API server says",
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
