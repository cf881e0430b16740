// Package standalone decides what clusters without an API server must know of each other: keys, pins
// and seeds. One machine makes the first cluster, invites others, and each accepts what it is given.
//
// Inputs are the pins that a cluster has and what it is offered; outputs are its new pins, and
// invitations. Pure: it must not know files. An invitation holds secrets: no String method shows
// them, and errors never quote them.
package standalone

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"strait.io/strait/clustermesh"
	"strait.io/strait/clustermesh/authority"
	"strait.io/strait/install/bundle"
)

// version is the version of an invitation.
const version = 1

// MaxSize bounds a file that is accepted, in bytes.
const MaxSize = 1 << 20

// Invitation makes a cluster a member. Any holder of it can act as that cluster.
type Invitation struct {
	Version int `json:"version"`
	// Cluster is the id of the cluster that is invited, and Root the private key of its root.
	Cluster   clustermesh.ClusterName `json:"cluster"`
	Root      bundle.Key              `json:"root"`
	GossipKey bundle.Key              `json:"gossipKey"`
	// Seeds are HOST:PORT of nodes of other clusters.
	Seeds []string        `json:"seeds,omitempty"`
	Pins  []authority.Pin `json:"pins"`
}

// Open reads an invitation. Anything else is an error.
func Open(text []byte) (Invitation, error) {
	if len(text) > MaxSize {
		return Invitation{}, fmt.Errorf("read invitation: %d bytes are more than %d", len(text), MaxSize)
	}
	var i Invitation
	d := json.NewDecoder(bytes.NewReader(text))
	d.DisallowUnknownFields()
	if err := d.Decode(&i); err != nil {
		return Invitation{}, errors.New("read invitation: it is not one, or has been changed") // err's text could quote a key
	}
	if i.Version != version {
		return Invitation{}, fmt.Errorf("read invitation: version %d is not %d; use the strait that wrote it, or a newer one", i.Version, version)
	}
	root, err := authority.ParsePrivate(string(i.Root))
	if err != nil {
		return Invitation{}, fmt.Errorf("read invitation: root: %w", err)
	}
	pins, err := i.PinsOf()
	if err != nil {
		return Invitation{}, fmt.Errorf("read invitation: %w", err)
	}
	if !slices.Contains(pins[i.Cluster].Roots, root.Public()) {
		return Invitation{}, fmt.Errorf("read invitation: its root is not that of cluster %s in its pins", i.Cluster)
	}
	if err := i.GossipKey.Check(); err != nil {
		return Invitation{}, fmt.Errorf("read invitation: %w", err)
	}
	return i, nil
}

// Encode returns the text of the invitation.
func (i Invitation) Encode() ([]byte, error) {
	i.Version = version
	text, err := json.MarshalIndent(i, "", "  ")
	return append(text, '\n'), err
}

// PinsOf returns the pins that the newcomer starts with, itself among them.
func (i Invitation) PinsOf() (authority.Pins, error) {
	pins := authority.Pins{}
	for _, p := range i.Pins {
		if _, twice := pins[p.Cluster]; twice {
			return nil, fmt.Errorf("pins: %s is pinned twice", p.Cluster)
		}
		pins[p.Cluster] = p
	}
	return authority.ParsePins(pins.Encode()) // which checks every field
}

// Invite adds a cluster to the pins, and returns the invitation that makes it a member from now on.
func Invite(pins authority.Pins, newcomer authority.Pin, root authority.PrivateKey, gossip bundle.Key, seeds []string, now time.Time) (authority.Pins, Invitation, error) {
	if have, known := pins[newcomer.Cluster]; known {
		return nil, Invitation{}, fmt.Errorf("cluster %s is pinned already, with root %s: give the new one another id", have.Cluster, have.Roots[0].Fingerprint())
	}
	newcomer.Roots, newcomer.Joined = []authority.PublicKey{root.Public()}, now.UTC().Truncate(time.Second)
	after := with(pins, newcomer)
	if len(pins) == 1 { // there were no exports before, so the first two clusters are equals
		for _, first := range pins {
			first.Joined = newcomer.Joined
			after[first.Cluster] = first
		}
	}
	checked, err := authority.ParsePins(after.Encode())
	if err == nil {
		err = after.Overlap()
	}
	if err != nil {
		return nil, Invitation{}, err
	}
	i := Invitation{Version: version, Cluster: newcomer.Cluster, Root: bundle.Key(root.Base64()), GossipKey: gossip, Seeds: seeds}
	for _, p := range checked {
		p.Namespaces = nil // each cluster decides for itself what it accepts
		i.Pins = append(i.Pins, p)
	}
	slices.SortFunc(i.Pins, func(a, b authority.Pin) int { return strings.Compare(string(a.Cluster), string(b.Cluster)) })
	return checked, i, nil
}

// Merge returns the pins of cluster own with those that it is offered, and which of them are new or
// changed. From the new ones, and from those that changed, it accepts the namespaces; nil keeps what
// was accepted. The offer's pin of own must be the known one.
func Merge(pins authority.Pins, own clustermesh.ClusterName, offered authority.Pins, namespaces []string) (authority.Pins, []authority.Pin, error) {
	after := with(pins)
	var changed []authority.Pin
	for _, p := range offered {
		have, known := pins[p.Cluster]
		if p.Cluster == own {
			if known && !slices.Equal(have.Roots, p.Roots) {
				return nil, nil, fmt.Errorf("cluster %s is this one, and the file has another root for it, %s: is there another cluster with this id?", own, p.Roots[0].Fingerprint())
			}
			continue
		}
		p.Namespaces = have.Namespaces
		if namespaces != nil {
			p.Namespaces = namespaces
		}
		if known && string(authority.Pins{p.Cluster: p}.Encode()) == string(authority.Pins{p.Cluster: have}.Encode()) {
			continue
		}
		after[p.Cluster] = p
		changed = append(changed, p)
	}
	slices.SortFunc(changed, func(a, b authority.Pin) int { return strings.Compare(string(a.Cluster), string(b.Cluster)) })
	return after, changed, after.Overlap()
}

// with returns a copy of the pins with more of them.
func with(pins authority.Pins, more ...authority.Pin) authority.Pins {
	out := authority.Pins{}
	for c, p := range pins {
		out[c] = p
	}
	for _, p := range more {
		out[p.Cluster] = p
	}
	return out
}
