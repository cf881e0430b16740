package daemon

import (
	"context"
	"log/slog"
	"net"
	"time"

	"golang.org/x/sync/errgroup"

	"strait.io/strait/clustermesh"
	"strait.io/strait/clustermesh/authority"
	"strait.io/strait/clustermesh/gossip"
	"strait.io/strait/clustermesh/kube"
	"strait.io/strait/clustermesh/kube/gkewriter"
	"strait.io/strait/clustermesh/kube/mirrorer"
	"strait.io/strait/clustermesh/kube/write"
	"strait.io/strait/clustermesh/kube/writer"
	"strait.io/strait/clustermesh/manifest"
	"strait.io/strait/daemon/trustlevel"
	"strait.io/strait/internal/gossipkey"
	"strait.io/strait/internal/notify"
)

// source is where the cluster's objects come from.
type source interface {
	// Run reads until ctx is done.
	Run(ctx context.Context) error
	// Local returns the content of the objects, and whether all of them have been read once. Before that,
	// only its Problems mean something.
	Local() (clustermesh.Local, bool)
	// Changed receives after Local has changed.
	Changed() <-chan struct{}
}

// replication is what the daemon needs from package gossip. See gossip.Gossip for what each method
// does.
type replication interface {
	Run(ctx context.Context) error
	SetSeeds(gossip.Seeds) error
	Publish(c clustermesh.Content) (changed bool)
	PublishCluster(c clustermesh.Content) (changed bool)
	State() clustermesh.State
	Leader() bool
	Synced() (ok bool, waiting string)
	Fresh() bool
	Changed() <-chan struct{}
	Heard() map[clustermesh.Origin]time.Time
	Refused() map[string]uint64
	Bytes() []gossip.Bytes
	Problems() []clustermesh.Problem
	Repin(authority.Pins)
	SetLax(lax bool)
	Reroot(*authority.PrivateKey)
	Rekey(gossipkey.Ring) error
	Distances() map[clustermesh.ClusterName]uint32
	RTTs() map[clustermesh.Origin]time.Duration
	Ways() gossip.Ways
	Ahead(clustermesh.Origin) (by time.Duration, known bool)
	Accept(clustermesh.Accept, clustermesh.LocalNamespaces)
	Trust() gossip.Trust
	Query(ctx context.Context, node clustermesh.NodeName) (net.Conn, error)
}

// openSource creates the source that the config names, and the API server if that is the source. It
// starts nothing.
func openSource(c Config, wake notify.Signal, log *slog.Logger) (source, apiServer, error) {
	if c.Source.Kubernetes != nil {
		k, err := openKubernetes(c, wake, log)
		if err != nil {
			return nil, nil, err
		}
		return k.source, k, nil
	}
	return manifest.New(manifest.Config{
		Dir: c.Source.Manifest, Cluster: clustermesh.ClusterName(c.Cluster), Policies: c.policies(), Log: log.With("part", "source"),
	}), noServer{}, nil
}

func openKubernetes(c Config, wake notify.Signal, log *slog.Logger) (*kubernetes, error) {
	log = log.With("part", "source")
	k := c.Source.Kubernetes
	client, err := kube.Connect(k.Kubeconfig)
	if err != nil {
		return nil, err
	}
	node := clustermesh.NodeName(c.Node)
	s := kube.New(kube.Config{
		Client: client, Node: node, Cluster: clustermesh.ClusterName(c.Cluster), Policies: c.policies(), BarredPatterns: k.BarredNamespaces, Namespace: k.Namespace,
		DrainCordoned: k.DrainCordoned, Tunnels: c.Mesh.on(), LocalByDefault: k.DefaultGlobalNamespace != nil && !*k.DefaultGlobalNamespace,
		NodePrefixes: c.NodePrefixes, FollowsConfigs: len(k.AcceptConfigFrom) > 0, Log: log,
	})
	out := &kubernetes{source: s, client: client, host: client.Host, namespace: k.Namespace, followsConfigs: len(k.AcceptConfigFrom) > 0}
	if k.LeaderDir != "" {
		out.lent = borrow(k.LeaderDir, wake)
		if client, err = client.As(out.lent.bearer); err != nil {
			return nil, err
		}
		out.client = client
	}
	out.writes, err = write.New(write.Config{REST: client.REST, Leading: out.leads, Log: log})
	if err != nil {
		return nil, err
	}
	out.writer = writer.New(out.writes)
	out.mirrors = mirrorer.New(out.writes)
	out.gke = gkewriter.New(out.writes)
	if m := c.Authority.Make; m != nil {
		out.maker = &maker{chore: newChore[trustlevel.Missing](), client: client, namespace: k.Namespace, names: *m}
	}
	if m := c.Authority.Make; m != nil && m.View != "" {
		out.viewToken = newTokenMaker(client, k.Namespace, m.View)
	}
	if name := c.Authority.Publish; name != "" {
		out.publisher = &publisher{chore: newChore[string](), client: client, namespace: k.Namespace, name: name}
	}
	out.dns = newDNSWatch(c.DNS, client.ClusterDNS, wake)
	out.leader = kube.NewLeader(kube.LeaderConfig{
		Client: client, Namespace: k.Namespace, Node: node, Term: out.term, Log: log.With("part", "leader"),
	})
	out.leader.SetCandidate(out.lent == nil)
	return out, nil
}

// kubernetes is what the daemon uses only if the cluster has an API server.
type kubernetes struct {
	source *kube.Source
	leader *kube.Leader
	// writer, mirrors and gke work while the leader leads. They write through writes.
	writes  *write.Engine
	writer  *writer.Writer
	mirrors *mirrorer.Mirrorer
	gke     *gkewriter.Writer
	// dns looks at the cluster's own DNS while the leader leads.
	dns *dnsWatch
	// lent is nil if the daemon leads with its own account. client has the account that leads.
	lent           *lent
	client         kube.Client
	host           string
	namespace      string      // strait's own
	followsConfigs bool        // configurations of other clusters are accepted
	maker          *maker      // nil if the leader makes no keys
	viewToken      *tokenMaker // nil if the leader makes none
	publisher      *publisher
}

// term does a leader's work until ctx is done.
func (k *kubernetes) term(ctx context.Context) error {
	g, ctx := errgroup.WithContext(ctx)
	g.Go(func() error { return k.writes.Run(ctx, k.writer, k.mirrors, k.gke) })
	g.Go(func() error { return k.dns.run(ctx) })
	if k.viewToken != nil {
		g.Go(func() error { return k.viewToken.run(ctx) })
	}
	if k.maker != nil {
		g.Go(func() error { return k.maker.run(ctx) })
	}
	if k.publisher != nil {
		g.Go(func() error { return k.publisher.run(ctx) })
	}
	return g.Wait()
}

func (k *kubernetes) leads() bool {
	is, _ := k.leader.Leader()
	return is
}
