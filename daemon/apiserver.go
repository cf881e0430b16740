package daemon

import (
	"context"
	"net/netip"
	"slices"

	"golang.org/x/sync/errgroup"

	"strait.io/strait/clustermesh"
	"strait.io/strait/clustermesh/authority"
	"strait.io/strait/clustermesh/kube"
	"strait.io/strait/clustermesh/policy"
	"strait.io/strait/daemon/api"
	"strait.io/strait/daemon/identity"
	"strait.io/strait/daemon/lend"
	"strait.io/strait/daemon/trustlevel"
)

// apiServer is what the daemon needs of its cluster's API server, besides the source of its objects:
// kubernetes, or noServer in a cluster that has none.
type apiServer interface {
	// present reports whether there is an API server.
	present() bool

	// start joins at once unless an API server has to identify the node; then identify does, later.
	start(d *Daemon) error
	identify(ctx context.Context, d *Daemon) error
	// election is what gossip asks for the leader; token, for a proof of which node this is. Nil without.
	election() func() (is bool, since uint64)
	token(file string) func() (string, error)
	// attest returns an error unless the node that asks is the one that the request is about.
	attest(ctx context.Context, r authority.Request, local clustermesh.Local) error

	// run works until ctx is done; ready: the node may lead without credentials from a pod.
	run(ctx context.Context, ready bool) error
	changed() []<-chan struct{}

	// hints returns where other nodes of the cluster should be, pods this node's, and policies those
	// that mirror Services into this cluster.
	hints(nodes []clustermesh.Node, self clustermesh.NodeName, port uint16) []netip.AddrPort
	pods() kube.Pods
	policies() []policy.Policy
	// followConfigs has the source follow the configurations of other clusters, and within leave out endpoints
	// that other clusters would not accept.
	followConfigs(all func() []clustermesh.ClusterConfig) (followed bool)
	within([]netip.Prefix)

	// loan returns what a pod lends this node to lead with. If lent is false, the node needs none.
	loan() (l lend.Loan, lent bool, err error)
	setMayLead(may bool)
	ownNamespace() string
	// make has the leader make what the cluster lacks, which depends on the root that is lent.
	make(lacks func(root string) trustlevel.Missing)
	// publish has the leader write what other clusters need to pin this one.
	publish(member string)
	write(d *Daemon, local clustermesh.Local, m *moment)
	results() []clustermesh.PolicyResult

	problems(c Config, now who) []clustermesh.Problem
	// report adds what was written to the status, and returns what is wrong with that.
	report(status *api.Status) []clustermesh.Problem
	written() []api.Written
}

// noServer stands in for the API server of a cluster without one. There is nothing to write.
type noServer struct{}

func (noServer) present() bool { return false }

func (noServer) start(d *Daemon) error {
	advertise, err := advertised(d.config)
	if err != nil {
		return err
	}
	return d.join(who{Cluster: clustermesh.ClusterName(d.config.Cluster), Advertise: advertise})
}

func (noServer) attest(_ context.Context, r authority.Request, local clustermesh.Local) error {
	// Before Listed: the error has the key that the operator must annotate.
	if err := authority.Annotated(r, local); err != nil {
		return err
	}
	return authority.Listed(r.Want.Node, local)
}

func (noServer) identify(context.Context, *Daemon) error                                 { return nil }
func (noServer) election() func() (bool, uint64)                                         { return nil }
func (noServer) token(string) func() (string, error)                                     { return nil }
func (noServer) run(context.Context, bool) error                                         { return nil }
func (noServer) changed() []<-chan struct{}                                              { return nil }
func (noServer) pods() kube.Pods                                                         { return kube.Pods{} }
func (noServer) policies() []policy.Policy                                               { return nil }
func (noServer) followConfigs(func() []clustermesh.ClusterConfig) bool                   { return true }
func (noServer) within([]netip.Prefix)                                                   {}
func (noServer) loan() (lend.Loan, bool, error)                                          { return lend.Loan{}, false, nil }
func (noServer) setMayLead(bool)                                                         {}
func (noServer) ownNamespace() string                                                    { return "" }
func (noServer) make(func(string) trustlevel.Missing)                                    {}
func (noServer) publish(string)                                                          {}
func (noServer) write(*Daemon, clustermesh.Local, *moment)                               {}
func (noServer) results() []clustermesh.PolicyResult                                     { return nil }
func (noServer) problems(Config, who) []clustermesh.Problem                              { return nil }
func (noServer) report(*api.Status) []clustermesh.Problem                                { return nil }
func (noServer) written() []api.Written                                                  { return nil }
func (noServer) hints([]clustermesh.Node, clustermesh.NodeName, uint16) []netip.AddrPort { return nil }

func (k *kubernetes) present() bool { return true }

func (k *kubernetes) start(*Daemon) error { return nil }

func (k *kubernetes) identify(ctx context.Context, d *Daemon) error {
	w, err := k.waitWho(ctx, d)
	if err != nil {
		return err
	}
	if err := d.join(w); err != nil {
		return err
	}
	d.log.Info("this node is identified", "cluster", w.Cluster, "uid", w.UID, "advertise", w.Advertise)
	return nil
}

func (k *kubernetes) election() func() (bool, uint64) { return k.leader.Leader }

func (k *kubernetes) run(ctx context.Context, ready bool) error {
	g, ctx := errgroup.WithContext(ctx)
	if k.lent != nil {
		g.Go(func() error { return k.lent.Run(ctx) })
	}
	if k.lent != nil || ready {
		g.Go(func() error { return k.leader.Run(ctx) })
	}
	return g.Wait()
}

func (k *kubernetes) changed() []<-chan struct{} {
	return []<-chan struct{}{k.leader.Changed(), k.mirrors.Changed()}
}

func (k *kubernetes) hints(nodes []clustermesh.Node, self clustermesh.NodeName, port uint16) []netip.AddrPort {
	return nodeHints(nodes, self, port)
}

func (k *kubernetes) pods() kube.Pods { return k.source.Pods() }

func (k *kubernetes) policies() []policy.Policy {
	taking, _ := k.source.Policies()
	return taking
}

func (k *kubernetes) followConfigs(all func() []clustermesh.ClusterConfig) bool {
	return !k.followsConfigs || k.source.FollowConfigs(all())
}

func (k *kubernetes) within(ranges []netip.Prefix) { k.source.Within(ranges) }

func (k *kubernetes) loan() (lend.Loan, bool, error) {
	if k.lent == nil {
		return lend.Loan{}, false, nil
	}
	l, err := k.lent.Now()
	return l, true, err
}

func (k *kubernetes) setMayLead(may bool) { k.leader.SetCandidate(may) }

func (k *kubernetes) ownNamespace() string { return k.namespace }

func (k *kubernetes) make(lacks func(root string) trustlevel.Missing) {
	if k.maker == nil {
		return
	}
	loan, _, _ := k.loan() // what is wrong with it is reported by stand
	k.maker.set(lacks(loan.Root))
}

func (k *kubernetes) publish(member string) {
	if k.publisher != nil {
		k.publisher.set(member)
	}
}

func (k *kubernetes) write(d *Daemon, local clustermesh.Local, m *moment) {
	d.writeObjects(k, local, m)
	d.writeMirrors(k, local, m)
	k.dns.uses(foreignName(m.result, local.Namespaces, d.self().Cluster))
}

func (k *kubernetes) results() []clustermesh.PolicyResult { return k.mirrors.Results() }

func (k *kubernetes) problems(c Config, now who) []clustermesh.Problem {
	return slices.Concat(k.leader.Problems(), identity.Problems(c.identity(), now, k.source.Identity()), k.dns.problems())
}

func (k *kubernetes) report(status *api.Status) []clustermesh.Problem {
	problems := k.writes.Problems()
	if k.maker != nil {
		problems = append(problems, k.maker.problems()...)
	}
	if k.viewToken != nil {
		problems = append(problems, k.viewToken.problems()...)
	}
	if k.publisher != nil {
		problems = append(problems, k.publisher.problems()...)
	}
	status.Unwritten = k.writer.Unwritten()
	if p, is := k.writer.Progress(); is {
		status.Writing = &api.Writing{Done: p.Done, Total: p.Total, Began: p.Began}
	}
	return problems
}

func (k *kubernetes) written() (out []api.Written) {
	for w, n := range k.writes.Writes() {
		out = append(out, api.Written{Verb: string(w.Verb), Kind: w.Kind, Failed: w.Failed, Count: n})
	}
	return out
}
