package replica

import "strait.io/strait/clustermesh"

// Kind is a message's type on the wire. Numbers are never reused; 7 is reserved for deltas between
// two versions of one record.
type Kind uint8

// The kinds of messages.
const (
	KindSnapshot Kind = 1
	KindAnnounce Kind = 2
	KindWant     Kind = 3
	KindDigest   Kind = 4
	KindVector   Kind = 5
	KindAgree    Kind = 6
)

// Message is what replicas send to each other. A Message is never changed once made.
type Message interface{ Kind() Kind }

// Snapshot carries whole records.
type Snapshot struct {
	Entries []Entry
	// Rejected are received records that are invalid. They are never sent.
	Rejected []Rejected
}

// Rejected is a record that was not accepted.
type Rejected struct {
	Origin  clustermesh.Origin
	Version Version
	Err     error
}

// Offer is the version of an origin's record that the sender holds.
type Offer struct {
	_       struct{} `cbor:",toarray"`
	Origin  clustermesh.Origin
	Version Version
}

// Announce offers the records that are new at the sender.
type Announce struct {
	Offers []Offer `cbor:"1,keyasint"`
}

// Want asks for the records of origins.
type Want struct {
	Origins []clustermesh.Origin `cbor:"1,keyasint"`
}

// ClusterSum is the digest of all versions that the sender holds of a cluster's origins.
type ClusterSum struct {
	_       struct{} `cbor:",toarray"`
	Cluster clustermesh.ClusterName
	Sum     [16]byte
}

// Digest opens an exchange. The answer is Agree, or the Vector of the clusters that differ.
type Digest struct {
	Clusters []ClusterSum `cbor:"1,keyasint"`
	Sender
}

// Sender is what a daemon says of itself in an exchange.
type Sender struct {
	// Unsynced is true while the sender itself does not know whether it has everything. Older builds
	// do not say so.
	Unsynced bool `cbor:"9,keyasint,omitempty"`
}

// ClusterVector lists all versions that the sender holds of a cluster's origins.
type ClusterVector struct {
	_       struct{} `cbor:",toarray"`
	Cluster clustermesh.ClusterName
	Offers  []Offer
}

// Vector is the answer to a Digest that differs. It names every cluster that differs. Its receiver
// sends or announces the records that it has in a newer version, and asks for those that the sender
// has in a newer version.
type Vector struct {
	Clusters []ClusterVector `cbor:"1,keyasint"`
	Sender
}

// Agree is the answer to a Digest that matches.
type Agree struct{ Sender }

// Unknown is a message of a kind that this build does not know. It is ignored.
type Unknown struct{ Type Kind }

// Kind returns KindSnapshot.
func (*Snapshot) Kind() Kind { return KindSnapshot }

// Kind returns KindAnnounce.
func (*Announce) Kind() Kind { return KindAnnounce }

// Kind returns KindWant.
func (*Want) Kind() Kind { return KindWant }

// Kind returns KindDigest.
func (*Digest) Kind() Kind { return KindDigest }

// Kind returns KindVector.
func (*Vector) Kind() Kind { return KindVector }

// Kind returns KindAgree.
func (*Agree) Kind() Kind { return KindAgree }

// Kind returns the type that was received.
func (u *Unknown) Kind() Kind { return u.Type }
