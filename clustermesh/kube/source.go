// Package kube reads a cluster from its Kubernetes API server.
//
// Inputs are a connection to the API server and the name of this node. Outputs are
// clustermesh.Local, the cluster's identity, this node's pods, and whether this node leads the
// cluster. It is a shell: watches and a Lease. It must not know what objects mean (package object),
// nor gossip, nor the kernel.
package kube

import (
	"context"
	"log/slog"
	"net/netip"
	"slices"
	"sync"
	"time"

	"github.com/go-logr/logr"
	"k8s.io/klog/v2"

	"strait.io/strait/clustermesh"
	"strait.io/strait/clustermesh/object"
	"strait.io/strait/clustermesh/policy"
	"strait.io/strait/clustermesh/record"
	"strait.io/strait/internal/notify"
)

const (
	// quiet is how long changes must pause before the objects are read again, and patience is the
	// longest that steady changes can put that off: a rollout is hundreds of changes.
	quiet    = 50 * time.Millisecond
	patience = 250 * time.Millisecond
	// look is how often the watches are checked even without a change, because time matters too: an
	// API server that stays away becomes a Problem.
	look = time.Second
)

// Config has the API server to read, and the node to read for.
type Config struct {
	Client Client
	// Node is the name of this machine's Node object. Of the pods, only this node's are kept; of
	// the endpoints, only this node's and those without a node.
	Node clustermesh.NodeName
	// BarredPatterns match the namespaces that take no part; see clustermesh.Barred.
	BarredPatterns []string
	// Namespace is strait's own.
	Namespace string
	// Cluster is the cluster's id, if the configuration gives it; empty means that its
	// ClusterProperty does.
	Cluster clustermesh.ClusterName
	// Policies are those of the daemon's configuration.
	Policies []policy.Policy
	// DrainCordoned drains Nodes that are cordoned.
	DrainCordoned bool
	// Tunnels is as in object.Config.
	Tunnels bool
	// LocalByDefault is as in object.Config.
	LocalByDefault bool
	// NodePrefixes are those of this node in the daemon's configuration.
	NodePrefixes []netip.Prefix
	// FollowsConfigs is true if other clusters' configuration counts; see FollowConfigs.
	FollowsConfigs bool
	// Log may be nil.
	Log *slog.Logger
}

// Source is the cluster in the API server. Make one with New, then Run it.
type Source struct {
	cfg     Config
	log     *slog.Logger
	changed notify.Signal
	dirty   notify.Signal
	lost    notify.Signal // a version that is watched may not be served any more

	watches map[string]*watch // by resource, one for each of object.Kinds

	took time.Duration // how long the last read took; owned by Run

	mu    sync.Mutex
	known known
	// configs are those of FollowConfigs, and asked their objects. Given counts their versions.
	configs []clustermesh.ClusterConfig
	asked   []object.Kept
	given   int
	// within are the ranges that Within set, and ranged counts how often they changed.
	within []netip.Prefix
	ranged int
}

// known is the API server's content. Immutable once published.
type known struct {
	objects clustermesh.Local     // what the objects say
	trouble []clustermesh.Problem // Problems with the watches
	local   clustermesh.Local     // objects, with trouble added to its Problems
	synced  bool

	identity Identity
	pods     Pods
	taking   []policy.Policy
	policies []policy.Facts
	gke      object.GKE
	// configs are those that it follows from, and followed is their version.
	configs  []clustermesh.ClusterConfig
	followed int
	// ranged is the version of the ranges.
	ranged int
}

// New makes a Source that knows nothing until it runs.
func New(cfg Config) *Source {
	s := &Source{cfg: cfg, log: cfg.Log, changed: notify.New(), dirty: notify.New(), lost: notify.New(), watches: map[string]*watch{}}
	if s.log == nil {
		s.log = slog.New(slog.DiscardHandler)
	}
	for _, k := range object.Kinds {
		w := newWatch(k, cfg.Node, s.dirty.Poke)
		w.gone = s.lost.Poke
		s.watches[k.Resource] = w
	}
	return s
}

// Local returns the API server's content, and whether everything needed has ever been read. Before
// that, nothing is known, which is not the same as an empty cluster, and only Problems is
// meaningful. What was read stays when the API server goes away. The caller must not change the
// result. It holds only the endpoints of this node and those without a node, because each node
// announces its own.
func (s *Source) Local() (clustermesh.Local, bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.known.local, s.known.synced
}

// Identity returns the cluster's identity, as far as it has been read.
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

// Policies returns the policies by which the cluster has mirrors or imports of other clusters' Services,
// the oldest first, and what is known of each ServicePolicy object.
func (s *Source) Policies() (taking []policy.Policy, objects []policy.Facts) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.known.taking, s.known.policies
}

// GKE returns the cluster's objects of networking.gke.io.
func (s *Source) GKE() object.GKE {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.known.gke
}

// FollowConfigs sets the configurations of the clusters whose configuration is accepted, those that take
// precedence first. It reports whether Local reflects a version of each of them, if not the last. Nothing
// counts as read before the first call: what these clusters want is unknown then, not empty.
func (s *Source) FollowConfigs(configs []clustermesh.ClusterConfig) (followed bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.given == 0 || !slices.EqualFunc(configs, s.configs, clustermesh.ClusterConfig.Equal) {
		s.configs, s.asked = configs, nil
		for _, c := range configs {
			s.asked = append(s.asked, object.ReadConfig(c)...)
		}
		s.given++
		s.dirty.Poke()
	}
	return s.known.synced && slices.EqualFunc(s.known.configs, configs, func(a, b clustermesh.ClusterConfig) bool { return a.Cluster == b.Cluster })
}

// Within sets in which ranges endpoints that name no node can be; nil allows every address.
func (s *Source) Within(ranges []netip.Prefix) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if !slices.Equal(ranges, s.within) || (ranges == nil) != (s.within == nil) {
		s.within = ranges
		s.ranged++
		s.dirty.Poke()
	}
}

// Changed receives a value after Local, Identity or Pods changed; several changes can share one
// value. It is for one receiver.
func (s *Source) Changed() <-chan struct{} { return s.changed }

// Run watches until ctx is done; then it returns nil.
func (s *Source) Run(ctx context.Context) error {
	// Failures become Problems here; client-go would log them again, at its own pace.
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

// pause returns how long changes must pause before the objects are read, and how long they can put
// that off; took is how long the last read took. While changes pour in, reading takes at most a
// sixth of the time: the daemon's turn after it costs more, and the changes that a first leader
// sees are its own writes, which need time too.
func pause(took time.Duration) (quietFor, patienceFor time.Duration) {
	return max(quiet, took), max(patience, 5*took)
}

// read works out what is known from what the watches hold, and publishes it if it changed.
func (s *Source) read() {
	start := time.Now()
	states, news := s.states()
	s.mu.Lock()
	old, configs, asked, given, within, ranged := s.known, s.configs, s.asked, s.given, s.within, s.ranged
	s.mu.Unlock()
	next := old
	// Once everything was read, synced stays true: a kind that appears later only adds objects.
	synced := old.synced || settled(states, start) && (given > 0 || !s.cfg.FollowsConfigs)
	if news = news || synced != old.synced || given != old.followed || ranged != old.ranged; news {
		next = s.gather(synced, asked, within)
		next.configs, next.followed, next.ranged = configs, given, ranged
		next.objects = record.Reuse(next.objects, old.objects)
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
		s.log.Info("read the cluster's objects", "nodes", len(next.local.Nodes), "exports", len(next.local.Exports))
	}
	s.changed.Poke()
}

// silence returns whether the API server answers and, if not, since when and why.
func (s *Source) silence() silence {
	since, err := s.cfg.Client.contact.state()
	return silence{host: s.cfg.Client.Host, err: err, since: since}
}

// states returns the state of each watch, and whether there is anything new to read since the last
// call.
func (s *Source) states() (out []state, news bool) {
	for _, k := range object.Kinds {
		st, fresh := s.watches[k.Resource].look()
		out = append(out, st)
		news = news || fresh
	}
	return out, news
}

// gather reads all objects. Until everything needed has been read (settled), it reads only the
// cluster's identity and the node's pods.
func (s *Source) gather(settled bool, asked []object.Kept, within []netip.Prefix) known {
	all := object.Objects{All: map[string]bool{}, Config: object.Config{
		Cluster: s.cfg.Cluster, Policies: s.cfg.Policies, BarredPatterns: s.cfg.BarredPatterns, Namespace: s.cfg.Namespace, DrainCordoned: s.cfg.DrainCordoned,
		Tunnels: s.cfg.Tunnels, LocalByDefault: s.cfg.LocalByDefault,
		NodePrefixes: s.cfg.NodePrefixes, Endpoints: within,
	}}
	for _, k := range object.Kinds {
		all.All[k.Resource] = s.watches[k.Resource].into(&all)
	}
	for _, o := range asked {
		all.Insert(o)
	}
	k := known{synced: settled, identity: s.identity(all), pods: object.ReadPods(all)}
	if settled {
		k.objects, k.taking = object.Local(all), object.Taking(all)
		k.policies, k.gke = object.PolicyFacts(all, k.objects.Shares), object.ReadGKE(all)
	}
	return k
}
