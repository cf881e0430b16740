package authority

import (
	"errors"
	"fmt"
	"net/netip"
	"slices"
	"strings"

	"sigs.k8s.io/yaml"

	"strait.io/strait/clustermesh"
	"strait.io/strait/internal/key"
)

// GuestsFile is the default path of the list of guests.
const GuestsFile = "/etc/strait/peers.yaml"

// Guest is what this cluster accepts from a machine outside every cluster, such as a laptop, that has
// a tunnel to nodes of this one.
type Guest struct {
	Name      string     `json:"name"`
	PublicKey key.Public `json:"publicKey"`
	// Range contains the addresses that the machine may send from, in the tunnel.
	Range []netip.Prefix `json:"range"`
	// Nodes of this cluster accept it. Empty: all that have it in their file.
	Nodes []clustermesh.NodeName `json:"nodes,omitempty"`
	// To are addresses that it may reach through a node, besides those of the node's own pods.
	To []netip.Prefix `json:"to,omitempty"`
	// Endpoint is the machine's outer UDP address; not needed if the machine connects first.
	Endpoint netip.AddrPort `json:"endpoint,omitzero"`
}

// maxGuest is the longest name: it is in the comments of nftables rules, of which the kernel stores
// 255 bytes.
const maxGuest = 63

// guestList is the form of guests in a file. It holds no secret.
type guestList struct {
	Peers []Guest `json:"peers"`
}

// ParseGuests reads the YAML of EncodeGuests, or of an operator. It returns all mistakes at once, each
// with the path of its field. A file without peers is not a mistake: removing the last peer leaves one.
func ParseGuests(text []byte) ([]Guest, error) {
	var l guestList
	if err := yaml.UnmarshalStrict(text, &l); err != nil {
		return nil, fmt.Errorf("read peers: %w", err)
	}
	var errs []error
	names, keys := map[string]bool{}, map[key.Public]string{}
	for i, g := range l.Peers {
		at := fmt.Sprintf("peers[%d]", i)
		if names[g.Name] {
			errs = append(errs, fmt.Errorf("%s.name: %s is there twice", at, g.Name))
		}
		if other, twice := keys[g.PublicKey]; twice && !g.PublicKey.IsZero() {
			errs = append(errs, fmt.Errorf("%s.publicKey: is that of %s too", at, other))
		}
		names[g.Name], keys[g.PublicKey] = true, g.Name
		for _, err := range g.mistakes() {
			errs = append(errs, fmt.Errorf("%s.%w", at, err))
		}
	}
	if err := errors.Join(errs...); err != nil {
		return nil, err
	}
	sortGuests(l.Peers)
	return l.Peers, nil
}

// mistakes returns what is wrong with a guest, each error with its field.
func (g Guest) mistakes() (errs []error) {
	add := func(format string, args ...any) { errs = append(errs, fmt.Errorf(format, args...)) }
	if len(g.Name) > maxGuest || g.Name == "" || strings.Trim(g.Name, "abcdefghijklmnopqrstuvwxyz0123456789-") != "" {
		add("name: %q: want at most %d lower case letters, digits and hyphens", g.Name, maxGuest)
	}
	if g.PublicKey.IsZero() {
		add("publicKey: is missing: want the output of wg pubkey on that machine")
	}
	if len(g.Range) == 0 {
		add("range: is missing: want the addresses that the machine sends from, as in 10.99.0.2/32")
	}
	for _, f := range []struct {
		name     string
		prefixes []netip.Prefix
	}{{"range", g.Range}, {"to", g.To}} {
		for i, p := range f.prefixes {
			if err := clustermesh.CheckPrefix(p); err != nil {
				add("%s[%d]: %w", f.name, i, err)
			} else if p != p.Masked() {
				add("%s[%d]: %s has host bits set: did you mean %s?", f.name, i, p, p.Masked())
			}
		}
	}
	for i, n := range g.Nodes {
		if err := clustermesh.CheckName(string(n)); err != nil {
			add("nodes[%d]: %w", i, err)
		}
	}
	if g.Endpoint != (netip.AddrPort{}) && (!g.Endpoint.IsValid() || g.Endpoint.Port() == 0) {
		add("endpoint: %s has no port", g.Endpoint)
	}
	return errs
}

// EncodeGuests returns the guests as YAML, sorted by name.
func EncodeGuests(gs []Guest) []byte {
	gs = slices.Clone(gs)
	sortGuests(gs)
	return must(yaml.Marshal(guestList{gs}))
}

func sortGuests(gs []Guest) {
	slices.SortStableFunc(gs, func(a, b Guest) int { return strings.Compare(a.Name, b.Name) })
}
