// Package masquerade keeps the addresses of a node's pods on their way into the tunnel, where the CNI would
// masquerade them: a peer accepts no other address of this node. It acts in the network namespace of the
// calling thread and is the only package that speaks nf_tables.
//
// Input is datapath.Sources; outputs are a table of strait's own, and a signal when somebody else changed it.
// It must not know peers, clusters or who masquerades. It reads and changes no foreign table.
package masquerade

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

// Config says where the exemption holds.
type Config struct {
	// Device is the tunnel, such as "strait0". It need not exist.
	Device string
	// Log hears what is changed. Nil discards.
	Log *slog.Logger
}

// Exemption is strait's table. Its methods may be called from several goroutines.
type Exemption struct {
	device string
	log    *slog.Logger

	mu sync.Mutex // held from wanting to having, so that Watch never compares with a table that is on its way
	// wanted is what the last Reconcile put; nil before the first and while no table is wanted.
	wanted *content
}

// New prepares an Exemption. It does nothing to the kernel.
func New(cfg Config) *Exemption {
	if cfg.Log == nil {
		cfg.Log = slog.New(slog.DiscardHandler)
	}
	return &Exemption{device: cfg.Device, log: cfg.Log}
}

// Reconcile makes the table say what want says, in one transaction, and writes nothing where it does. Want
// without prefixes wants no table; with prune false it changes nothing. A kernel that cannot do it is a Problem, since
// to try again would not help, and where no CNI masquerades it does no harm. An error means that the table cannot be
// read or written.
func (e *Exemption) Reconcile(want datapath.Sources, prune bool) ([]problem.Problem, error) {
	e.mu.Lock()
	defer e.mu.Unlock()
	err := e.reconcile(want, prune)
	if errors.Is(err, errors.ErrUnsupported) {
		return []problem.Problem{{
			Code:    problem.NotExempted,
			Object:  "masquerade",
			Message: "pods' calls to other clusters fail if the CNI masquerades them, since strait cannot exempt them: " + err.Error(),
			Try:     "load the kernel modules, or turn masquerading off in the CNI",
			Warning: true,
		}}, nil
	}
	return nil, err
}

func (e *Exemption) reconcile(want datapath.Sources, prune bool) error {
	if len(want.Prefixes) == 0 {
		if !prune {
			return nil
		}
		e.wanted = nil
		return remove(e.log)
	}
	c := contentOf(e.device, want)
	e.wanted = &c
	have, err := held()
	if err != nil {
		return err
	}
	if have != nil && have.equal(c) {
		return nil
	}
	if err := put(c, have != nil); err != nil {
		return fmt.Errorf("put nft table %s: %w", tableName, unsupported(err, unix.ENOENT))
	}
	e.log.Debug("put nft table", "table", tableName, "device", e.device, "prefixes", len(want.Prefixes), "node", want.Node)
	return nil
}

// CleanUp removes the table. It is content where there is none, and where the kernel can have none.
func CleanUp() error { return remove(slog.New(slog.DiscardHandler)) }

func remove(log *slog.Logger) error {
	have, err := held()
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

// unsupported joins errors.ErrUnsupported to what a kernel says that lacks a part of nf_tables: without
// nfnetlink there is no such socket, without nf_tables or the inet family no such message. Further numbers are
// those that mean it at the caller's place.
func unsupported(err error, further ...unix.Errno) error {
	for _, n := range append(further, unix.EPROTONOSUPPORT, unix.EAFNOSUPPORT, unix.EOPNOTSUPP) {
		if errors.Is(err, n) {
			return fmt.Errorf("%w (%w: needs nf_tables with NAT, CONFIG_NF_TABLES_INET and CONFIG_NFT_NAT; try modprobe nft_nat nft_chain_nat)", err, errors.ErrUnsupported)
		}
	}
	return err
}
