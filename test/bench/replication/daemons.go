package replication

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"net/netip"
	"sync"
	"time"

	"strait.io/strait/clustermesh"
	"strait.io/strait/clustermesh/gossip"
	"strait.io/strait/internal/gossipkey"
)

const (
	// perCluster is how many daemons a cluster has, and port where each listens, at an address of its
	// own.
	perCluster, port = 12, 27946
	// formWithin is how long they may take until each hears each.
	formWithin = 2 * time.Minute
)

// daemons runs the gossip of daemons in this process, on loopback addresses of their own, until each
// hears each and all have rested, and adds what that took.
func daemons(ctx context.Context, s Size, out map[string]float64) error {
	ctx, cancel := context.WithCancel(ctx)
	var running sync.WaitGroup
	defer running.Wait()
	defer cancel()
	var all []*gossip.Gossip
	var names []clustermesh.Origin
	began := time.Now()
	for i := range s.Daemons {
		c := gossip.Config{
			Self: clustermesh.Origin{
				Cluster: clustermesh.ClusterName(fmt.Sprint("c", i/perCluster)), Node: clustermesh.NodeName(fmt.Sprintf("n%02d", i%perCluster)),
			},
			Bind: netip.AddrPortFrom(netip.AddrFrom4([4]byte{127, 99, byte(i / perCluster), byte(1 + i%perCluster)}), port),
			Keys: gossipkey.Ring{gossipkey.Key(bytes.Repeat([]byte{7}, gossipkey.Size))},
		}
		if i > 0 {
			c.Seeds = []string{netip.AddrPortFrom(netip.AddrFrom4([4]byte{127, 99, 0, 1}), port).String()}
		}
		g, err := gossip.New(c)
		if err != nil {
			return err
		}
		all, names = append(all, g), append(names, c.Self)
		g.Publish(clustermesh.Content{Node: &clustermesh.Node{Name: c.Self.Node, Addresses: []netip.Addr{c.Bind.Addr()}, GossipPort: port}})
		running.Go(func() {
			if err := g.Run(ctx); err != nil {
				fmt.Println(err)
			}
		})
	}
	for !formed(all, names) {
		if time.Since(began) > formWithin {
			return errors.New("the daemons do not hear each other")
		}
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-time.After(50 * time.Millisecond):
		}
	}
	out["replication_daemons"] = float64(s.Daemons)
	out["replication_daemons_form_s"] = time.Since(began).Seconds()
	out["replication_daemons_form_mb"] = float64(sent(all)) / 1e6
	select { // until streams that are not needed any more have ended
	case <-ctx.Done():
		return ctx.Err()
	case <-time.After(min(5*time.Second, s.Rest)):
	}
	before := sent(all)
	select {
	case <-ctx.Done():
		return ctx.Err()
	case <-time.After(s.Rest):
	}
	out["replication_daemons_idle_bytes_s"] = float64(sent(all)-before) / s.Rest.Seconds() / float64(s.Daemons)
	return nil
}

// formed reports whether each holds the record of each, and hears it.
func formed(all []*gossip.Gossip, names []clustermesh.Origin) bool {
	for i, g := range all {
		s := g.State()
		for j, o := range names {
			if _, held := s.Records.Lookup(o); !held || i != j && !s.Contacts.Get(o).Heard() {
				return false
			}
		}
	}
	return true
}

// sent returns how many bytes all have sent.
func sent(all []*gossip.Gossip) (n uint64) {
	for _, g := range all {
		for _, b := range g.Bytes() {
			if b.Direction == "sent" {
				n += b.Bytes
			}
		}
	}
	return n
}
