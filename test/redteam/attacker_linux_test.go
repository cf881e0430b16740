package redteam

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
	"path/filepath"
	"strings"
	"sync"
	"time"

	"strait.io/strait/clustermesh"
	"strait.io/strait/clustermesh/authority"
	"strait.io/strait/clustermesh/gossip"
	"strait.io/strait/clustermesh/gossip/stream"
	"strait.io/strait/clustermesh/replica"
	"strait.io/strait/internal/l4"
	"strait.io/strait/internal/testutil"
)

// attacker is a program of an attacker that speaks gossip.
type attacker struct {
	*gossip.Gossip
	w       *world
	cluster clustermesh.ClusterName
	// end stops it. The test does so too.
	end func()
}

// attack starts an attacker that has the gossip key, and the keys of sign if that is not nil. It
// holds the forged entries as if it had received them, so it offers them to every peer.
func (w *world) attack(self clustermesh.Origin, sign *gossip.Authority, forged ...replica.Entry) *attacker {
	w.Helper()
	dir := w.TempDir()
	w.must(hold(filepath.Join(dir, "replica.cbor"), forged))
	return w.speaks(mallory, gossip.Config{Self: self, StateDir: dir, Authority: sign, Lead: leads()})
}

// leads returns the Lead of a daemon that leads its cluster, in a term that begins now. In another term,
// what waits to be written would be dropped.
func leads() func() (bool, uint64) {
	term := uint64(time.Now().UnixMilli())
	return func() (bool, uint64) { return true, term }
}

// speaks runs a daemon's gossip at the address of a number, as the configuration says besides.
func (w *world) speaks(number byte, cfg gossip.Config) *attacker {
	w.Helper()
	cfg.Bind, cfg.Keys, cfg.Seeds = gossipOf(number), w.keys, []string{gossipOf(westNumber).String(), gossipOf(eastNumber).String()}
	g, err := gossip.New(cfg)
	w.must(err)
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan error, 1)
	go func() { done <- g.Run(ctx) }()
	end := sync.OnceFunc(func() {
		cancel()
		if err := <-done; err != nil {
			w.Errorf("the attacker: %v", err)
		}
	})
	w.Cleanup(end)
	return &attacker{g, w, cfg.Self.Cluster, end}
}

// lead publishes the record of the attacker's cluster. The write of a large record can be delayed.
func (a *attacker) lead(c clustermesh.Content) {
	a.w.Helper()
	testutil.Eventually(a.w, patience, func() error {
		if !a.Leader() {
			return errors.New("the attacker does not lead its cluster yet")
		}
		return nil
	})
	written := func() clustermesh.Stamp {
		return a.State().Records.Get(clustermesh.Origin{Cluster: a.cluster}).Stamp
	}
	before := written()
	a.PublishCluster(c)
	testutil.Eventually(a.w, patience, func() error {
		if written() == before {
			return errors.New("the attacker has not written its cluster's record yet")
		}
		return nil
	})
}

// hold writes entries as an earlier life of a daemon would have left them.
func hold(path string, entries []replica.Entry) error {
	var rest bytes.Buffer
	b := bufio.NewWriter(&rest)
	frame, err := replica.Encode(&replica.Snapshot{Entries: entries})
	if err := errors.Join(err, stream.WriteFrame(b, frame), b.Flush()); err != nil {
		return err
	}
	sum := sha256.Sum256(rest.Bytes())
	return os.WriteFile(path, append([]byte("strait replica 1 "+hex.EncodeToString(sum[:])+"\n"), rest.Bytes()...), 0o600)
}

// origin names a node, or a cluster.
func origin(cluster, node string) clustermesh.Origin {
	return clustermesh.Origin{Cluster: clustermesh.ClusterName(cluster), Node: clustermesh.NodeName(node)}
}

// forge makes a record that is newer than what its origin wrote, by so much.
func (w *world) forge(o clustermesh.Origin, newer time.Duration, c clustermesh.Content) replica.Entry {
	w.Helper()
	at := uint64(time.Now().Add(newer).UnixNano())
	if o.Node == "" {
		at = uint64(time.Now().Add(newer).UnixMilli())
	}
	e, err := replica.NewEntry(clustermesh.Record{Origin: o, Stamp: clustermesh.Stamp{Epoch: at, Version: 1}, Content: c})
	w.must(err)
	return e
}

// sealed signs an entry with a key and a signed statement.
func (w *world) sealed(e replica.Entry, by authority.PrivateKey, statement []byte) replica.Entry {
	w.Helper()
	raw, err := e.Bytes()
	w.must(err)
	return e.Sealed(authority.Seal(by, raw, statement))
}

// content returns what a node says of itself, with endpoints of default/serve at addresses.
func content(name string, number byte, addrs ...netip.Addr) clustermesh.Content {
	c := clustermesh.Content{Node: &clustermesh.Node{
		Name: clustermesh.NodeName(name), Addresses: []netip.Addr{machine(number)},
		Prefixes: []netip.Prefix{netip.PrefixFrom(netip.AddrFrom4([4]byte{10, number, 1, 0}), 24)},
	}}
	for _, a := range addrs {
		c.Endpoints = append(c.Endpoints, endpoint("default", name, a))
	}
	return c
}

// exported is what a cluster says of a Service that it exports, of an age in seconds.
func exported(namespace, name string, age int) clustermesh.Export {
	return clustermesh.Export{
		Service: clustermesh.ServiceName{Namespace: namespace, Name: name}, Type: clustermesh.ClusterSetIP,
		Created: time.Now().Unix() - int64(age), Ports: []clustermesh.ServicePort{{Name: "http", Port: 80, Proto: l4.TCP}},
	}
}

func endpoint(namespace, node string, a netip.Addr) clustermesh.Endpoint {
	return clustermesh.Endpoint{
		Service: clustermesh.ServiceName{Namespace: namespace, Name: "serve"}, Addr: a, Node: clustermesh.NodeName(node),
		Ports: []clustermesh.EndpointPort{{Name: "http", Proto: 6, Port: 8080}}, Ready: true, Serving: true,
	}
}

// lines is a log that others write while it is read.
type lines struct {
	mu sync.Mutex
	b  bytes.Buffer
}

func (l *lines) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.b.Write(p)
}

func (l *lines) String() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.b.String()
}

func (l *lines) count() int { return strings.Count(l.String(), "\n") }

// saysNothing waits until there is no problem.
func (m *member) saysNothing() {
	m.w.Helper()
	testutil.Eventually(m.w, 2*patience, func() error {
		s, err := m.status()
		if err == nil && len(s.Problems) > 0 {
			err = fmt.Errorf("%s: %v", m.cluster, s.Problems)
		}
		return err
	})
}
