package scale

import (
	"bufio"
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"net/netip"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"time"

	"strait.io/strait/clustermesh"
	"strait.io/strait/clustermesh/gossip"
	"strait.io/strait/clustermesh/gossip/stream"
	"strait.io/strait/clustermesh/replica"
	"strait.io/strait/internal/key"
)

// c2 is the other cluster: its nodes are straitd's peers in the tunnel. Only a few of them have a
// daemon; these know the records of the others from an earlier life, as daemons do, and pass them
// on by gossip. The others are held: they remain peers as long as no node knows that they are dead.
// Their records have no gossip port, so no daemon looks for them.
const c2 = clustermesh.ClusterName("c2")

// remoteUnderlay is the range of the addresses of c2's nodes. They are local to this machine.
var remoteUnderlay = netip.MustParsePrefix("198.18.0.0/16")

func remoteName(n int) clustermesh.NodeName { return clustermesh.NodeName(fmt.Sprintf("peer-%05d", n)) }

// remoteGossip returns the address at which the gossip of a node of c2 listens.
func remoteGossip(n int) netip.AddrPort {
	return netip.AddrPortFrom(netip.AddrFrom4([4]byte{127, 0, 2, byte(1 + n%250)}), 7946)
}

// remoteContent returns what a node of c2 publishes: a key, an underlay address and a pod range,
// but no endpoints.
func remoteContent(n int) clustermesh.Content {
	name := remoteName(n)
	return clustermesh.Content{Node: &clustermesh.Node{
		Name: name, Locality: clustermesh.Locality{Zone: "zone-2"}, PublicKey: key.Public(sha256.Sum256([]byte(name))),
		Addresses: []netip.Addr{netip.AddrFrom4([4]byte{198, 18, byte(n >> 8), byte(n)})}, WireGuardPort: 51820,
		Prefixes: []netip.Prefix{netip.PrefixFrom(netip.AddrFrom4([4]byte{100, byte(64 + n>>8), byte(n), 0}), 24)},
	}}
}

// routeRemote makes the addresses in c2's underlay local, in the network namespace of the calling
// process.
func routeRemote() error {
	if out, err := exec.Command("ip", "route", "replace", "local", remoteUnderlay.String(), "dev", "lo").CombinedOutput(); err != nil {
		return fmt.Errorf("route %s: %w: %s", remoteUnderlay, err, out)
	}
	return nil
}

// remote returns the gossip of node first of c2. It also knows the records of the nodes after it,
// up to but not including end. Node 0 leads c2.
func (m *measurement) remote(first, end int) (*gossip.Gossip, error) {
	dir := filepath.Join(m.Dir, "remote", string(remoteName(first)))
	var held []clustermesh.Record
	for n := first + 1; n < end; n++ {
		held = append(held, heldRecord(c2, "uid-of-c2", remoteContent(n)))
	}
	if err := writeRecords(dir, held); err != nil {
		return nil, err
	}
	since := uint64(time.Now().UnixMilli())
	g, err := gossip.New(gossip.Config{
		Self: clustermesh.Origin{Cluster: c2, Node: remoteName(first)}, UID: "uid-of-c2", StateDir: dir,
		Bind: remoteGossip(first), Keys: m.keys, Seeds: []string{gossipOf(0).String()},
		Lead: func() (bool, uint64) { return first == 0, since }, Log: m.log,
	})
	if err != nil {
		return nil, fmt.Errorf("gossip of %s: %w", remoteName(first), err)
	}
	g.Publish(remoteContent(first))
	return g, forget(dir)
}

// lead publishes c2's own record, which names all of its nodes. g is the gossip of c2's first node
// and must be running.
func lead(ctx context.Context, g *gossip.Gossip, all int) error {
	var c clustermesh.Content
	for n := range all {
		c.Nodes = append(c.Nodes, remoteName(n))
	}
	return await(ctx, 10*time.Millisecond, func() (bool, error) { return g.PublishCluster(c), nil })
}

// forget stops a gossip that has read its state from writing it again after each change: that would
// take as much of the machine as straitd needs to write its own.
func forget(dir string) error {
	return errors.Join(os.RemoveAll(dir), os.WriteFile(dir, nil, 0o600))
}

// heldRecord returns the record of a node that another daemon holds.
func heldRecord(cluster clustermesh.ClusterName, uid string, c clustermesh.Content) clustermesh.Record {
	return clustermesh.Record{
		Origin: clustermesh.Origin{Cluster: cluster, Node: c.Node.Name}, UID: uid,
		Stamp: clustermesh.Stamp{Epoch: uint64(time.Now().UnixMilli()), Version: 1}, Content: c,
	}
}

// writeRecords writes records as an earlier life of a daemon would have left them, in the form of
// package gossip's state file. gossip refuses the file if the form is wrong.
func writeRecords(dir string, records []clustermesh.Record) error {
	var entries []replica.Entry
	for _, r := range records {
		e, err := replica.NewEntry(r)
		if err != nil {
			return err
		}
		entries = append(entries, e)
	}
	var rest bytes.Buffer
	w := bufio.NewWriter(&rest)
	for chunk := range slices.Chunk(entries, 10) {
		frame, err := replica.Encode(&replica.Snapshot{Entries: chunk})
		if err == nil {
			err = stream.WriteFrame(w, frame)
		}
		if err != nil {
			return err
		}
	}
	if err := errors.Join(w.Flush(), os.MkdirAll(dir, 0o700)); err != nil {
		return err
	}
	sum := sha256.Sum256(rest.Bytes())
	return os.WriteFile(filepath.Join(dir, "replica.cbor"), append([]byte("strait replica 1 "+hex.EncodeToString(sum[:])+"\n"), rest.Bytes()...), 0o600)
}
