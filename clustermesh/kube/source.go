// Package kube is a cluster whose objects are in a Kubernetes API server.
//
// Inputs are a connection to the API server and the name of this node; outputs are
// clustermesh.Local, who the cluster is, this node's pods, and whether this node leads the cluster.
// Shell: watches and a Lease. It must not know what objects mean (package object), nor gossip, nor
// the kernel.
package kube

import (
	"context"
	"log/slog"
	"slices"
	"sync"
	"time"

	"github.com/go-logr/logr"
	"k8s.io/klog/v2"

	"strait.io/strait/clustermesh"
	"strait.io/strait/clustermesh/object"
	"strait.io/strait/internal/notify"
)

const (
	// quiet is how long the API server must say nothing before the objects are read again, patience
	// the most that endless changes can put that off: a rollout is hundreds of changes.
	quiet    = 50 * time.Millisecond
	patience = 250 * time.Millisecond
	// look is how often the passing of time is looked at: an API server away for long becomes a
	// Problem.
	look = time.Second
)

// Config says which API server, and for whom.
type Config struct {
	Client Client
	// Node is this machine's Node object: only its pods and its endpoints, and those of no node,
	// are kept.
	Node clustermesh.NodeName
	// BarredPatterns are patterns of namespaces that take no part; see clustermesh.Barred.
	BarredPatterns []string
	// Log may be nil.
	Log *slog.Logger
}

// Source is the cluster in the API server. Make one with New, then Run it.
type Source struct {
	cfg     Config
	log     *slog.Logger
	changed notify.Signal
	dirty   notify.Signal

	watches map[string]*watch // by resource, one for each of object.Kinds

	took time.Duration // of Run alone: what the last reading cost

	mu    sync.Mutex
	known known
}

// known is what the API server says. Immutable once published.
type known struct {
	objects clustermesh.Local     // what the objects say
	trouble []clustermesh.Problem // with the watches
	local   clustermesh.Local     // both
	synced  bool

	identity Identity
	pods     Pods
}

// New makes a Source that knows nothing until it runs.
func New(cfg Config) *Source {
	s := &Source{cfg: cfg, log: cfg.Log, changed: notify.New(), dirty: notify.New(), watches: map[string]*watch{}}
	if s.log == nil {
		s.log = slog.New(slog.DiscardHandler)
	}
	for _, k := range object.Kinds {
		s.watches[k.Resource] = newWatch(k, cfg.Node, s.dirty.Poke)
	}
	return s
}

// Local returns what the API server says, and whether everything needed for it was ever read:
// before that nothing is known, which is not the same as an empty cluster, and only Problems mean
// something. What was read stays when the API server goes away. The caller must not change what it
// gets. Of the endpoints there are only this node's and those of no node: each node announces its
// own.
func (s *Source) Local() (clustermesh.Local, bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.known.local, s.known.synced
}

// Identity returns who the cluster is, as far as its API server has said.
func (s *Source) Identity() Identity {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.known.identity
}

// Pods returns the pods of this node.
func (s *Source) Pods() Pods {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.known.pods
}

// Changed receives after Local, Identity or Pods have changed; several changes may give one. For
// one receiver.
func (s *Source) Changed() <-chan struct{} { return s.changed }

// Run watches until ctx is done; then it returns nil.
func (s *Source) Run(ctx context.Context) error {
	// What goes wrong becomes a Problem here; client-go would say it again, at its own pace.
	ctx = klog.NewContext(ctx, logr.Discard())
	var wg sync.WaitGroup
	defer wg.Wait()
	for _, k := range object.Kinds {
		if !k.Custom {
			wg.Go(func() { s.watches[k.Resource].run(ctx, s.cfg.Client, k.Versions[0]) })
		}
	}
	wg.Go(func() { s.discover(ctx, wg.Go) })
	for more := true; more; {
		s.read()
		quietFor, patienceFor := pause(s.took)
		more = notify.Await(ctx, s.dirty, look, quietFor, patienceFor)
	}
	return nil
}

// pause is how long changes must stop before the objects are read, and how long at most they can
// put that off. Reading, which took so long the last time, takes a sixth of the time at most: the
// daemon's turn after it costs more, and the changes of a first leader are its own writes, for which
// there is to be time.
func pause(took time.Duration) (quietFor, patienceFor time.Duration) {
	return max(quiet, took), max(patience, 5*took)
}

// read makes what is known of what the watches hold, and publishes it if that is news.
func (s *Source) read() {
	start := time.Now()
	states, news := s.states()
	s.mu.Lock()
	old := s.known
	s.mu.Unlock()
	next := old
	// What was read once stays known: a kind that turns up later adds to it.
	synced := old.synced || settled(states, start)
	if news = news || synced != old.synced; news {
		next = s.gather(synced)
		next.objects = next.objects.Reuse(old.objects)
	}
	s.took = time.Since(start)
	next.trouble = problems(states, s.silence(), start)
	if !news && slices.Equal(next.trouble, old.trouble) {
		return
	}
	next.local = next.objects
	next.local.Problems = clustermesh.SortProblems(slices.Concat(next.objects.Problems, next.trouble))
	s.mu.Lock()
	s.known = next
	s.mu.Unlock()
	s.log.Debug("objects read", "took", time.Since(start), "endpoints", len(next.local.Endpoints), "problems", len(next.local.Problems))
	if next.synced && !old.synced {
		s.log.Info("the cluster's objects are read", "nodes", len(next.local.Nodes), "exports", len(next.local.Exports))
	}
	s.changed.Poke()
}

// silence is whether the API server answers.
func (s *Source) silence() silence {
	since, err := s.cfg.Client.contact.state()
	return silence{host: s.cfg.Client.Host, err: err, since: since}
}

// states returns how each watch stands, and whether there is something else to read than last time.
func (s *Source) states() (out []state, news bool) {
	for _, k := range object.Kinds {
		st, fresh := s.watches[k.Resource].look()
		out = append(out, st)
		news = news || fresh
	}
	return out, news
}

// gather reads all objects. Before it is settled that all are there, it reads only who the cluster
// is, and the node's pods.
func (s *Source) gather(settled bool) known {
	all := object.Objects{All: map[string]bool{}, Config: object.Config{BarredPatterns: s.cfg.BarredPatterns}}
	for _, k := range object.Kinds {
		all.All[k.Resource] = s.watches[k.Resource].into(&all)
	}
	k := known{synced: settled, identity: s.identity(all), pods: object.ReadPods(all)}
	if settled {
		k.objects = object.Local(all)
	}
	return k
}
