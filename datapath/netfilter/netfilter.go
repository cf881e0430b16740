// Package netfilter has a table of strait's own in nf_tables, which does four things to packets that
// pass the tunnel. Pods' packets are exempt from the CNI's masquerading, because a peer accepts only
// pods' own addresses from this node. And TCP agrees on segments that fit into the tunnel, so that a
// connection does not depend on ICMP. And what comes out of the tunnel reaches this node's pods, but
// not the node's own listeners or what is behind the node. And pods that use the node's network are
// reached at the node's address inside the tunnel. The package acts in the network namespace of the
// calling thread and is the only one that speaks nf_tables.
//
// Its input is datapath.Sources. Its outputs are the table, and a signal when another program
// changed it. It must not know about peers, clusters or which program masquerades, and it gets the
// sizes of packets from the kernel's routes. It does not read or change the tables of other
// programs.
package netfilter

import (
	"errors"
	"fmt"
	"log/slog"
	"sync"

	"github.com/google/nftables"
	"golang.org/x/sys/unix"

	"strait.io/strait/datapath"
	"strait.io/strait/internal/problem"
)

// Config selects the traffic that the table is for.
type Config struct {
	// Device is the tunnel device, such as "strait0". It need not exist.
	Device string
	// Log receives the changes; nil discards them.
	Log *slog.Logger
}

// Table manages strait's table. Its methods can be called from several goroutines.
type Table struct {
	device string
	log    *slog.Logger

	// mu is held from setting wanted until the table is written, so that Watch never reads the
	// table in between.
	mu sync.Mutex
	// wanted is what the last Reconcile with prefixes wanted. It is nil before that, and after a
	// Reconcile that removed the table.
	wanted *content
	// inForce: the kernel had the table as wanted after the last Reconcile.
	inForce bool
}

// New returns a Table. It does not touch the kernel.
func New(cfg Config) *Table {
	if cfg.Log == nil {
		cfg.Log = slog.New(slog.DiscardHandler)
	}
	return &Table{device: cfg.Device, log: cfg.Log}
}

// Reconcile makes the table match want, in one transaction; it writes nothing if the table already
// matches. If want has no prefixes, it removes the table, or with prune false changes nothing.
//
// An error means that the table cannot be read or written. A kernel without the necessary nf_tables
// support is a Problem instead: a retry would not help, and if no CNI masquerades, nothing is
// missing.
func (t *Table) Reconcile(want datapath.Sources, prune bool) ([]problem.Problem, error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	err := t.reconcile(want, prune)
	t.inForce = err == nil && t.wanted != nil
	if errors.Is(err, errors.ErrUnsupported) {
		return []problem.Problem{{
			Code:    problem.NotExempted,
			Object:  "netfilter",
			Message: "other clusters can send packets to this node's listeners and through it, and no peer outside the clusters is accepted; if the CNI masquerades pods' connections to other clusters, they fail, because strait cannot exempt them, and connections need ICMP to learn the tunnel's MTU: " + err.Error(),
			Try:     "load the kernel modules; or turn off masquerading in the CNI, let no firewall drop ICMP, and let one drop what comes in by the tunnel's device and is not for pods",
			Warning: true,
		}}, nil
	}
	return nil, err
}

// InForce reports whether the kernel had the whole table after the last Reconcile. Before the first
// one, it did not.
func (t *Table) InForce() bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.inForce
}

func (t *Table) reconcile(want datapath.Sources, prune bool) error {
	if len(want.Prefixes) == 0 {
		if !prune {
			return nil
		}
		t.wanted = nil
		return remove(t.log)
	}
	c := contentOf(t.device, want)
	t.wanted = &c
	have, err := installed()
	if err != nil {
		return err
	}
	if have != nil && have.equal(c) {
		return nil
	}
	if err := put(c, have != nil); err != nil {
		return fmt.Errorf("put nft table %s: %w", tableName, unsupported(err, unix.ENOENT))
	}
	t.log.Debug("put nft table", "table", tableName, "device", t.device, "prefixes", len(want.Prefixes), "node", want.Node)
	return nil
}

// CleanUp removes the table. It succeeds if there is none, and if the kernel does not support such
// a table.
func CleanUp() error { return remove(slog.New(slog.DiscardHandler)) }

func remove(log *slog.Logger) error {
	have, err := installed()
	if errors.Is(err, errors.ErrUnsupported) || err == nil && have == nil {
		return nil
	}
	if err != nil {
		return err
	}
	var c nftables.Conn
	c.DelTable(table)
	if err := c.Flush(); err != nil && !errors.Is(err, unix.ENOENT) {
		return fmt.Errorf("remove nft table %s: %w", tableName, err)
	}
	log.Debug("removed nft table", "table", tableName)
	return nil
}

// unsupported adds errors.ErrUnsupported to an error by which a kernel shows that it lacks a part
// of nf_tables. Without nfnetlink it has no such socket; without nf_tables or the inet family it
// has no such message. further are errors that mean the same for the caller's request.
func unsupported(err error, further ...unix.Errno) error {
	for _, n := range append(further, unix.EPROTONOSUPPORT, unix.EAFNOSUPPORT, unix.EOPNOTSUPP) {
		if errors.Is(err, n) {
			return fmt.Errorf("%w (%w: needs nf_tables with NAT, CONFIG_NF_TABLES_INET, CONFIG_NFT_NAT and CONFIG_NFT_CT; try modprobe -a nft_nat nft_chain_nat nft_ct nft_counter)", err, errors.ErrUnsupported)
		}
	}
	return err
}
