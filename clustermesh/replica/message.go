package replica

import "strait.io/strait/clustermesh"

// Kind is a message's type on the wire. Numbers are never reused.
type Kind uint8

// The kinds of messages.
const (
	KindSnapshot Kind = 1
	KindAnnounce Kind = 2
	KindWant     Kind = 3
	KindDigest   Kind = 4
	KindVector   Kind = 5
	KindAgree    Kind = 6
	KindDelta    Kind = 7
	KindDeflated Kind = 8
	KindHello    Kind = 9
	KindRoot     Kind = 10
	KindSums     Kind = 11
	KindBuckets  Kind = 12
	KindListing  Kind = 13
	KindLinks    Kind = 14
)

// Message is what replicas send to each other. A Message is never changed once made.
type Message interface{ Kind() Kind }

// Snapshot carries whole records.
type Snapshot struct {
	Entries []Entry
	// Rejected are received records that are invalid. They are never sent.
	Rejected []Rejected
	// items are those of a Delta that Entries were made from, to be passed on.
	items map[clustermesh.Origin]DeltaItem
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
	// Hints are further offers, to a peer that understands SpeaksHints.
	Hints []Hint `cbor:"2,keyasint,omitempty"`
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

// Hello says what its sender understands besides kinds 1 to 6, and what it holds. It is the first
// message on a stream that is whole. A daemon that sends none understands no more.
type Hello struct {
	// Speaks is the highest of the levels below that the sender understands.
	Speaks uint8 `cbor:"1,keyasint"`
	// Sum is that of a Root.
	Sum [16]byte `cbor:"2,keyasint"`
	Sender
}

// The levels of Hello.
const (
	// SpeaksDeltas is that of Delta, and of messages that are deflated.
	SpeaksDeltas = 1
	// SpeaksRepair is that of Root, Sums, Buckets and Listing.
	SpeaksRepair = 2
	// SpeaksHints is that of Hint.
	SpeaksHints = 3
)

// Links says whom its sender hears. It is not about records: a Replica ignores it.
type Links struct {
	// Heard are those of which the sender hears a daemon on a stream, and Via those that other
	// relays of its cluster say they hear.
	Heard []clustermesh.ClusterName `cbor:"1,keyasint,omitempty"`
	Via   []clustermesh.ClusterName `cbor:"2,keyasint,omitempty"`
	// Silent are the nodes of its own cluster whose streams have ended or carry nothing, and SilentVia
	// those of which other relays say so.
	Silent    []clustermesh.NodeName `cbor:"3,keyasint,omitempty"`
	SilentVia []clustermesh.NodeName `cbor:"4,keyasint,omitempty"`
}

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

// Kind returns KindDelta.
func (*Delta) Kind() Kind { return KindDelta }

// Kind returns KindDeflated.
func (*Deflated) Kind() Kind { return KindDeflated }

// Kind returns KindHello.
func (*Hello) Kind() Kind { return KindHello }

// Kind returns KindRoot.
func (*Root) Kind() Kind { return KindRoot }

// Kind returns KindSums.
func (*Sums) Kind() Kind { return KindSums }

// Kind returns KindBuckets.
func (*Buckets) Kind() Kind { return KindBuckets }

// Kind returns KindListing.
func (*Listing) Kind() Kind { return KindListing }

// Kind returns KindLinks.
func (*Links) Kind() Kind { return KindLinks }

// Kind returns the type that was received.
func (u *Unknown) Kind() Kind { return u.Type }
