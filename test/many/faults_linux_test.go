package many

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"
)

// deaths kills the machine of a relay, and the daemon of a node that is not a relay, while others change: the
// rest see each change. Then both come back.
func (f *fleet) deaths() {
	f.Helper()
	relay, plain := f.pick(f.clusters[0], true), f.pick(f.clusters[2], false)
	began := time.Now()
	relay.kill()
	relay.unplug()
	plain.kill()
	living := slices.DeleteFunc(slices.Clone(f.nodes), func(n *node) bool { return n.cmd == nil })
	f.Logf("the machine of relay %s and the daemon of %s have died", relay.origin(), plain.origin())
	// Some of all clusters, and all of the relay's own.
	var changed []*node
	for i, n := range living {
		if i%6 == 0 || n.cluster == relay.cluster {
			changed = append(changed, f.change(n)...)
			time.Sleep(100 * time.Millisecond)
		}
	}
	f.await(fmt.Sprintf("%d changes after the deaths are seen by all", len(changed)), living, sees(changed))
	f.await("the machine is dead, and the daemon quiet, for all", living, func(ctx context.Context, n *node) error {
		return errors.Join(n.takes(ctx, relay, true, "silent", "held"), n.takes(ctx, plain, false, "quiet"))
	})
	f.Logf("that was %.1f s after they died", time.Since(began).Seconds())
	f.await("the dead machine's pod is withdrawn, and that of the quiet one is not", living, func(ctx context.Context, n *node) error {
		if err := sees([]*node{relay})(ctx, n); err == nil {
			return errors.New("it is still there")
		}
		return sees([]*node{plain})(ctx, n)
	})
	f.linked(living)
	f.await("a change after that is seen by all", living, sees(f.change(f.pick(relay.cluster, true))))

	relay.plug()
	relay.start()
	plain.start()
	f.await("all hear all again", f.nodes, hearsAll)
	f.await("nothing is missing", f.nodes, keeps(f.nodes))
}

// takes wants a node to take another one for dead or not, with one of the contacts.
func (n *node) takes(ctx context.Context, other *node, dead bool, contacts ...string) error {
	list, err := n.api().Nodes(ctx)
	if err != nil {
		return err
	}
	for _, o := range list.Items {
		if o.Cluster == other.cluster.name && o.Name == other.name() {
			if o.Dead != dead || !slices.Contains(contacts, o.Contact) {
				return fmt.Errorf("%s is %s, dead: %v", other.origin(), o.Contact, o.Dead)
			}
			return nil
		}
	}
	return fmt.Errorf("%s is unknown", other.origin())
}

// pick returns a running node of a cluster: one that is a relay, or one that is not.
func (f *fleet) pick(c *cluster, relay bool) *node {
	f.Helper()
	for _, n := range c.nodes {
		if n.cmd == nil {
			continue
		}
		is, _, err := linked(f.Context(), n)
		f.must(err)
		if is == relay {
			return n
		}
	}
	f.Fatalf("%s has no node for which being a relay is %v", c.name, relay)
	return nil
}

// partition cuts a cluster off. Nothing is withdrawn on either side. Then it is healed, and all that has
// changed meanwhile is seen everywhere.
func (f *fleet) partition(lost *cluster) {
	f.Helper()
	rest := slices.DeleteFunc(slices.Clone(f.nodes), func(n *node) bool { return n.cluster == lost })
	lost.cut()
	within, without := f.change(lost.nodes[3]), f.change(rest[3])
	// Half of a cluster is enough: on the smaller side, memberlist takes up to a minute to miss the last of so
	// many.
	f.await("the cut is noticed everywhere", f.nodes, func(ctx context.Context, n *node) error {
		status, err := n.api().Status(ctx)
		if err != nil {
			return err
		}
		missed := 0
		for _, c := range status.Clusters {
			if (c.Name == lost.name) != (n.cluster == lost) && c.Alive <= c.Nodes/2 {
				missed++
			}
		}
		if missed == 0 {
			return errors.New("it is not noticed")
		}
		return keeps(f.nodes)(ctx, n)
	})
	f.await("a change there is seen there", lost.nodes, sees(within))
	f.await("a change elsewhere is seen elsewhere", rest, sees(without))
	// A wrong decision about a machine would be made in this time: a death takes 4 s.
	for end := time.Now().Add(5 * time.Second); time.Now().Before(end); time.Sleep(200 * time.Millisecond) {
		f.must(each(f.nodes, keeps(f.nodes)))
	}
	lost.heal()
	f.await("all hear all after the cut", f.nodes, hearsAll)
	f.await("what changed during the cut is seen by all", f.nodes, sees(append(within, without...)))
	f.must(each(f.nodes, keeps(f.nodes)))
	f.linked(f.nodes)
}

// keeps wants a node to have withdrawn nothing of the given ones: it takes none for dead, and knows an endpoint
// of each.
func keeps(of []*node) func(context.Context, *node) error {
	return func(ctx context.Context, n *node) error {
		list, err := n.api().Nodes(ctx)
		if err != nil {
			return err
		}
		for _, o := range list.Items {
			if o.Dead {
				return fmt.Errorf("%s/%s is dead", o.Cluster, o.Name)
			}
		}
		known, err := n.endpoints(ctx)
		if err != nil {
			return err
		}
		for _, o := range of {
			if known[o.origin()] == nil {
				return fmt.Errorf("the pod of %s is withdrawn", o.origin())
			}
		}
		return nil
	}
}
