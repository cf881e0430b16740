// Package vault changes the keys of clusters and what they pin, in an order in which no step cuts a
// node off: it replaces a root key or the gossip key, evicts a cluster, and revokes a node's key.
//
// Inputs are vaults, which are a directory or a cluster's Secret and ConfigMap, and a function that
// waits for daemons; outputs are changed vaults. An interrupted procedure continues from what the
// vaults hold when it runs again. It must not know files, API servers, flags or how text is
// printed.
package vault

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"strait.io/strait/clustermesh"
	"strait.io/strait/clustermesh/authority"
	"strait.io/strait/daemon/api"
	"strait.io/strait/internal/gossipkey"
)

// Vault is where the keys and pins of one cluster are.
type Vault interface {
	// String names the vault for people.
	String() string
	ReadKeys(ctx context.Context) (Keys, error)
	// WriteKeys replaces what the vault holds, the pins first: what a root signs counts where it is
	// pinned.
	WriteKeys(ctx context.Context, k Keys) error
	ReadGossip(ctx context.Context) (Gossip, error)
	WriteGossip(ctx context.Context, g Gossip) error
	// Members returns the list of members of each daemon that can be asked, by node.
	Members(ctx context.Context) (map[string]api.MemberList, error)
}

// Keys are the root key of a cluster, and what it pins.
type Keys struct {
	Own clustermesh.ClusterName
	// Root is the zero key if the vault has none.
	Root authority.PrivateKey
	// Next is the key that replaces the root, while that is being replaced.
	Next *authority.PrivateKey
	Pins authority.Pins
}

// Gossip are the gossip keys of a cluster's daemons. Next is the one that replaces the other, while
// it does.
type Gossip struct {
	Ring gossipkey.Ring
	Next *gossipkey.Key
}

// Misuse is an error in what a procedure was asked for. Nothing was written.
type Misuse string

func (m Misuse) Error() string { return string(m) }

// Wait asks what is behind until nothing is, and returns an error that names what and the last
// answer if that takes too long.
type Wait func(ctx context.Context, what string, behind func() string) error

// withRoots returns pins in which a cluster has these roots.
func withRoots(pins authority.Pins, id clustermesh.ClusterName, roots ...authority.PublicKey) authority.Pins {
	out := authority.Pins{}
	for c, p := range pins {
		if c == id {
			p.Roots = roots
		}
		out[c] = p
	}
	return out
}

// Lagging names a daemon that pins other clusters or roots than its vault; "" if none does.
func Lagging(ctx context.Context, vaults []Vault, pins func(i int) authority.Pins) string {
	for i, v := range vaults {
		want := pinned(pins(i))
		lists, err := v.Members(ctx)
		if err != nil {
			return err.Error()
		}
		for node, l := range lists {
			if got := pinnedBy(l); !slices.Equal(got, want) {
				return fmt.Sprintf("%s of %s has %q, want %q", node, v, got, want)
			}
		}
	}
	return ""
}

// pinned returns pins as pinnedBy does.
func pinned(pins authority.Pins) (out []string) {
	for id, p := range pins {
		roots := make([]string, len(p.Roots))
		for i, r := range p.Roots {
			roots[i] = r.Fingerprint()
		}
		out = append(out, string(id)+" "+strings.Join(roots, " "))
	}
	slices.Sort(out)
	return out
}

// pinnedBy returns the clusters that a daemon pins, each with the fingerprints of its roots,
// sorted.
func pinnedBy(l api.MemberList) (out []string) {
	for _, m := range l.Items {
		if m.Node == "" && m.Pinned {
			out = append(out, m.Cluster+" "+strings.Join(m.Keys, " "))
		}
	}
	slices.Sort(out)
	return out
}

// FirstOf returns what is found in the first list of members, of all daemons, in which anything is
// found; "" if nothing is.
func FirstOf(ctx context.Context, vaults []Vault, find func(api.MemberList) []string) string {
	for _, v := range vaults {
		lists, err := v.Members(ctx)
		if err != nil {
			return err.Error()
		}
		for node, l := range lists {
			if found := find(l); len(found) > 0 {
				return fmt.Sprintf("%s of %s has %s", node, v, some(found))
			}
		}
	}
	return ""
}

// some lists the first names.
func some(names []string) string {
	const most = 5
	if len(names) <= most {
		return strings.Join(names, ", ")
	}
	return fmt.Sprintf("%s and %d more", strings.Join(names[:most], ", "), len(names)-most)
}
