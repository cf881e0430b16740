package many

import (
	"context"
	"fmt"
	"net/netip"
	"slices"
	"sync"
	"time"

	"strait.io/strait/daemon/api"
	"strait.io/strait/daemon/api/client"
	"strait.io/strait/internal/testutil"
)

func (n *node) api() *client.Client { return client.OnSocket(n.path("run/strait.sock")) }

// await waits until a check holds at each of the nodes, and asks only those where it did not yet.
func (f *fleet) await(what string, nodes []*node, check func(context.Context, *node) error) time.Duration {
	f.Helper()
	began := time.Now()
	left := slices.Clone(nodes)
	testutil.Eventually(f, patience, func() error {
		var mu sync.Mutex
		well := map[*node]bool{}
		err := each(left, func(ctx context.Context, n *node) error {
			if err := check(ctx, n); err != nil {
				return fmt.Errorf("%s: %w", what, err)
			}
			mu.Lock()
			defer mu.Unlock()
			well[n] = true
			return nil
		})
		left = slices.DeleteFunc(left, func(n *node) bool { return well[n] })
		return err
	})
	took := time.Since(began)
	f.Logf("%s after %.1f s", what, took.Seconds())
	return took
}

// hearsAll wants a node to hold the record of each node and each cluster, each signed, and to count each as
// there.
func hearsAll(ctx context.Context, n *node) error {
	list, err := n.api().Members(ctx)
	if err != nil {
		return err
	}
	nodes, of := 0, 0
	for _, m := range list.Items {
		there := m.State == api.Self || m.State == api.Alive || m.State == api.Reported
		if m.Node == "" {
			there = m.State == string(api.Here) || m.State == string(api.Joined)
			of++
		} else {
			nodes++
		}
		if !there || !m.Signed {
			return fmt.Errorf("%s/%s is %s, signed: %v", m.Cluster, m.Node, m.State, m.Signed)
		}
	}
	if nodes != all || of != clusters {
		return fmt.Errorf("%d nodes of %d clusters", nodes, of)
	}
	status, err := n.api().Status(ctx)
	if err == nil && (status.Origins != all+clusters || status.Authority != api.AuthorityPinned || !status.Ready) {
		err = fmt.Errorf("%d records, authority %s, ready: %v", status.Origins, status.Authority, status.Ready)
	}
	return err
}

const (
	// relaysOf is how many relays a cluster of twelve has, and guests is how many extra streams a node that
	// is not a relay may have.
	relaysOf, guests = 3, 1
)

// linked checks that a node has the streams that docs/clusterset.md says, and returns how many. A node that is
// not a relay has two, to relays of its cluster, and perhaps a guest. A relay has one to each other relay of its
// cluster, one to each other cluster, and some to nodes of its own.
func linked(ctx context.Context, n *node) (relay bool, count int, err error) {
	list, err := n.api().Members(ctx)
	if err != nil {
		return false, 0, err
	}
	relays, self := map[string]int{}, api.Member{}
	for _, m := range list.Items {
		if m.Relay {
			relays[m.Cluster]++
		}
		if m.State == api.Self {
			self = m
		}
	}
	for _, c := range n.f.clusters {
		if relays[c.name] != relaysOf {
			return self.Relay, 0, fmt.Errorf("%s has %d relays", c.name, relays[c.name])
		}
	}
	mates, abroad, homes := 0, map[string]int{}, 0
	for _, m := range list.Items {
		switch own := m.Cluster == n.cluster.name; {
		case m.Node == "" || m.Link != api.LinkStream:
			continue
		case own && m.Relay:
			mates++
		case own:
			homes++
		case m.Relay:
			abroad[m.Cluster]++
		default:
			err = fmt.Errorf("a stream to %s/%s, which is no relay", m.Cluster, m.Node)
		}
		count++
	}
	switch {
	case err != nil:
	case !self.Relay && (mates != 2 || count > mates+guests):
		err = fmt.Errorf("%d streams, %d to relays of its cluster", count, mates)
	case self.Relay && mates != 2:
		err = fmt.Errorf("a relay with %d streams to others of its cluster", mates)
	case self.Relay && homes == 0:
		err = fmt.Errorf("a relay of no node")
	case self.Relay && len(abroad) != clusters-1:
		err = fmt.Errorf("a relay with streams to %d other clusters", len(abroad))
	}
	for c, k := range abroad {
		if self.Relay && k != 1 {
			err = fmt.Errorf("a relay with %d streams to %s", k, c)
		}
	}
	return self.Relay, count, err
}

// sees wants a node to know the pods that the given ones have now, as endpoints that are not withdrawn.
func sees(of []*node) func(context.Context, *node) error {
	return func(ctx context.Context, n *node) error {
		known, err := n.endpoints(ctx)
		if err != nil {
			return err
		}
		for _, o := range of {
			if !slices.Contains(known[o.origin()], o.podAddr()) {
				return fmt.Errorf("%s of %s is missing: it has %v", o.podAddr(), o.origin(), known[o.origin()])
			}
		}
		return nil
	}
}

// withdrawn is the reason of an endpoint that is, because its machine is dead.
const withdrawn = "node is dead: its cluster says so"

// endpoints returns those of all nodes that a node knows and that are not withdrawn.
func (n *node) endpoints(ctx context.Context) (map[string][]netip.Addr, error) {
	list, err := n.api().Services(ctx)
	if err != nil {
		return nil, err
	}
	known := map[string][]netip.Addr{}
	for _, s := range list.Items {
		for _, front := range s.Frontends {
			for _, e := range front.Endpoints {
				if o := e.Cluster + "/" + e.Node; e.Reason != withdrawn {
					known[o] = append(known[o], e.Addr.Addr())
				}
			}
		}
	}
	return known, nil
}

// change gives a node another pod, and returns it.
func (f *fleet) change(n *node) []*node {
	f.Helper()
	n.pod++
	n.publish()
	n.changed = time.Now()
	return []*node{n}
}

// travelled prints how long the record of what has changed on a node was on its way: from when the file was
// there until another daemon had the record, which the daemons note.
func (f *fleet) travelled(changed *node, nodes []*node) {
	f.Helper()
	var mu sync.Mutex
	var took []time.Duration
	f.must(each(nodes, func(ctx context.Context, n *node) error {
		list, err := n.api().Members(ctx)
		if err != nil {
			return err
		}
		mu.Lock()
		defer mu.Unlock()
		for _, m := range list.Items {
			if m.Cluster == changed.cluster.name && m.Node == changed.name() && m.State != api.Self {
				took = append(took, m.Received.Sub(changed.changed))
			}
		}
		return nil
	}))
	slices.Sort(took)
	f.Logf("from a file to the record at another node: %v at half of them, %v at all",
		took[len(took)/2].Round(time.Millisecond), took[len(took)-1].Round(time.Millisecond))
}
