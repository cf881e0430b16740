// Package bundle is what the clusters of a clusterset must know of each other to connect: ids, node
// addresses and the gossip key, in one versioned document.
//
// Inputs are the content of each cluster's API server and the bundle that it holds; output is one bundle
// for all clusters, or the reasons why they cannot be joined. Pure: it must not know an API server.
// A bundle holds a secret: no String method shows it, and errors never quote it.
package bundle

import (
	"bytes"
	"cmp"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"net/netip"
	"regexp"
	"slices"
	"strings"

	"strait.io/strait/internal/gossipkey"
)

// Version is the document's version.
const Version = 1

// keySize is the size of a gossip key in bytes.
const keySize = 32

// maxSize bounds a document: a Secret holds 1 MiB.
const maxSize = 1 << 20

// Key is a key of 32 bytes in base64, such as the gossip key. It prints as an ellipsis.
type Key string

// String hides the key.
func (Key) String() string { return "…" }

// GoString hides the key.
func (Key) GoString() string { return "…" }

// Bundle is the document. Clusters are sorted by id, their nodes by address.
type Bundle struct {
	Version   int       `json:"version"`
	GossipKey Key       `json:"gossipKey"`
	Clusters  []Cluster `json:"clusters"`
}

// Cluster is one member.
type Cluster struct {
	ID string `json:"id"`
	// UID is the UID of the namespace kube-system, which tells two clusters with the same id apart.
	UID string `json:"uid,omitempty"`
	// Nodes are addresses with gossip ports, at which other clusters find this one.
	Nodes []netip.AddrPort `json:"nodes"`
	// PodCIDRs are the ranges of its pods, as far as the API server knows them.
	PodCIDRs []netip.Prefix `json:"podCIDRs,omitempty"`
}

// NewKey makes a key of 32 random bytes.
func NewKey(random [keySize]byte) Key { return Key(base64.StdEncoding.EncodeToString(random[:])) }

// Check returns an error unless the key is 32 bytes in base64.
func (k Key) Check() error {
	raw, err := base64.StdEncoding.DecodeString(strings.TrimSpace(string(k)))
	if err != nil || len(raw) != keySize {
		return fmt.Errorf("gossipKey: want %d bytes in base64", keySize)
	}
	return nil
}

// Fingerprint returns a short hash of the key that is safe to show: enough to compare two keys, too
// little to guess one.
func (k Key) Fingerprint() string { return gossipkey.Fingerprint(string(k)) }

var label = regexp.MustCompile(`^[a-z0-9]([a-z0-9-]{0,61}[a-z0-9])?$`)

// Parse reads a document. A version other than Version and unknown fields are errors.
func Parse(data []byte) (Bundle, error) {
	if len(data) > maxSize {
		return Bundle{}, fmt.Errorf("read bundle: %d bytes are more than %d", len(data), maxSize)
	}
	var head struct{ Version int }
	if err := json.Unmarshal(data, &head); err != nil {
		return Bundle{}, errors.New("read bundle: it is not JSON") // err's text could quote the key
	}
	if head.Version != Version {
		return Bundle{}, fmt.Errorf("read bundle: version %d is not %d; use the strait that wrote it, or a newer one", head.Version, Version)
	}
	var b Bundle
	decoder := json.NewDecoder(bytes.NewReader(data))
	decoder.DisallowUnknownFields()
	if err := decoder.Decode(&b); err != nil {
		var wrong *json.UnmarshalTypeError
		if errors.As(err, &wrong) {
			return Bundle{}, fmt.Errorf("read bundle: %s: wrong type", wrong.Field)
		}
		return Bundle{}, errors.New("read bundle: unknown field, or invalid address")
	}
	if err := b.check(); err != nil {
		return Bundle{}, fmt.Errorf("read bundle: %w", err)
	}
	return b.sorted(), nil
}

func (b Bundle) check() error {
	if err := b.GossipKey.Check(); err != nil {
		return err
	}
	seen := map[string]bool{}
	for i, c := range b.Clusters {
		switch {
		case !label.MatchString(c.ID):
			return fmt.Errorf("clusters[%d].id: %q is not a DNS label", i, c.ID)
		case seen[c.ID]:
			return fmt.Errorf("clusters[%d].id: %s is a duplicate", i, c.ID)
		}
		seen[c.ID] = true
		for j, n := range c.Nodes {
			if !n.IsValid() || n.Port() == 0 {
				return fmt.Errorf("clusters[%d].nodes[%d]: want ADDRESS:PORT", i, j)
			}
		}
		for j, p := range c.PodCIDRs {
			if !p.IsValid() {
				return fmt.Errorf("clusters[%d].podCIDRs[%d]: want a CIDR", i, j)
			}
		}
	}
	return nil
}

func (b Bundle) sorted() Bundle {
	b.Clusters = slices.Clone(b.Clusters)
	for i := range b.Clusters {
		c := &b.Clusters[i]
		c.Nodes, c.PodCIDRs = slices.Clone(c.Nodes), slices.Clone(c.PodCIDRs)
		slices.SortFunc(c.Nodes, netip.AddrPort.Compare)
		c.Nodes = slices.Compact(c.Nodes)
		slices.SortFunc(c.PodCIDRs, netip.Prefix.Compare)
		c.PodCIDRs = slices.Compact(c.PodCIDRs)
	}
	slices.SortFunc(b.Clusters, func(x, y Cluster) int { return cmp.Compare(x.ID, y.ID) })
	return b
}

// Encode returns the document. Equal bundles give equal bytes.
func (b Bundle) Encode() []byte {
	b.Version = Version
	text, err := json.MarshalIndent(b.sorted(), "", "  ")
	if err != nil {
		panic("encode bundle: " + err.Error()) // plain data
	}
	return append(text, '\n')
}

// Hash changes if daemons must restart to use the bundle, which is so if the key changes. Daemons
// read new seeds by themselves.
func (b Bundle) Hash() string { return b.GossipKey.Fingerprint() }

// Members returns the ids of its clusters, sorted.
func (b Bundle) Members() (ids []string) {
	for _, c := range b.Clusters {
		ids = append(ids, c.ID)
	}
	slices.Sort(ids)
	return ids
}

// Cluster returns the member with an id.
func (b Bundle) Cluster(id string) (Cluster, bool) {
	i := slices.IndexFunc(b.Clusters, func(c Cluster) bool { return c.ID == id })
	if i < 0 {
		return Cluster{}, false
	}
	return b.Clusters[i], true
}

// Without returns the bundle without a member.
func (b Bundle) Without(id string) Bundle {
	b.Clusters = slices.DeleteFunc(slices.Clone(b.Clusters), func(c Cluster) bool { return c.ID == id })
	return b
}

// Seeds returns the seeds file for the daemons of the cluster own: the nodes of the other clusters.
// The daemons know their own cluster's nodes.
func (b Bundle) Seeds(own string) []byte {
	var out strings.Builder
	out.WriteString("# Written by strait clusterset connect.\n")
	for _, c := range b.sorted().Clusters {
		if c.ID == own {
			continue
		}
		fmt.Fprintf(&out, "# cluster %s\n", c.ID)
		for _, n := range c.Nodes[:min(len(c.Nodes), maxSeeds)] {
			fmt.Fprintln(&out, n)
		}
	}
	return []byte(out.String())
}

// maxSeeds is how many nodes of a cluster are listed. Gossip names the others.
const maxSeeds = 20
