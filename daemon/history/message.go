package history

import (
	"fmt"
	"net/netip"
	"slices"
	"time"

	"github.com/fxamacker/cbor/v2"

	"strait.io/strait/clustermesh"
	"strait.io/strait/daemon/api"
)

// message is what is written of a turn: what differs from the turn before. A turn with a lot to say takes
// several.
type message struct {
	Seq uint64 `cbor:"1,keyasint"`
	// At is the turn's time in nanoseconds since 1970.
	At int64 `cbor:"2,keyasint"`
	// Whole: what came before is forgotten, and the rest is everything.
	Whole bool `cbor:"3,keyasint,omitempty"`
	// More: another message of the same turn follows.
	More     bool                 `cbor:"4,keyasint,omitempty"`
	Start    string               `cbor:"5,keyasint,omitempty"`
	Settings cbor.RawMessage      `cbor:"6,keyasint,omitempty"`
	Records  []recordChange       `cbor:"7,keyasint,omitempty"`
	Gone     []clustermesh.Origin `cbor:"8,keyasint,omitempty"`
	Contacts []contactChange      `cbor:"9,keyasint,omitempty"`
	Proven   []provenChange       `cbor:"10,keyasint,omitempty"`
	Error    string               `cbor:"11,keyasint,omitempty"`
	// Item is for people; its Seq, Time and Error are those of the message.
	Item cbor.RawMessage `cbor:"12,keyasint,omitempty"`
}

// recordChange is a record that differs: its stamp, and what of its bytes does.
type recordChange struct {
	Origin clustermesh.Origin `cbor:"1,keyasint"`
	Stamp  clustermesh.Stamp  `cbor:"2,keyasint"`
	// Head and Tail are how many bytes stay at the beginning and the end; Body is what is between them.
	Head uint32 `cbor:"3,keyasint,omitempty"`
	Tail uint32 `cbor:"4,keyasint,omitempty"`
	Body []byte `cbor:"5,keyasint,omitempty"`
}

// contactChange is a contact that differs; Gone if there is none any more.
type contactChange struct {
	_       struct{} `cbor:",toarray"`
	Cluster clustermesh.ClusterName
	Node    clustermesh.NodeName
	Contact uint8
	Gone    bool
}

// provenChange is where a node proved who it is; invalid if that counts no more.
type provenChange struct {
	Origin clustermesh.Origin `cbor:"1,keyasint"`
	At     netip.AddrPort     `cbor:"2,keyasint"`
}

// body is a record without its origin and stamp. Unlike on the wire, what the node itself has found of the
// record is a part of it: plans depend on that.
type body struct {
	Content   clustermesh.Content   `cbor:"1,keyasint"`
	UID       string                `cbor:"2,keyasint,omitempty"`
	Problems  []clustermesh.Problem `cbor:"3,keyasint,omitempty"`
	Late      []clustermesh.Late    `cbor:"4,keyasint,omitempty"`
	Unasked   int                   `cbor:"5,keyasint,omitempty"`
	KeyProven bool                  `cbor:"6,keyasint,omitempty"`
}

var encMode = must(cbor.CoreDetEncOptions().EncMode())

// decMode refuses what no build of strait writes, and what could take a lot of memory.
var decMode = must(cbor.DecOptions{
	DupMapKey: cbor.DupMapKeyEnforcedAPF, MaxNestedLevels: 16, MaxArrayElements: 1 << 20, MaxMapPairs: 1 << 14,
	IndefLength: cbor.IndefLengthForbidden, TagsMd: cbor.TagsForbidden,
}.DecMode())

// must panics on an error. It is for options that are constants in this file.
func must[T any](v T, err error) T {
	if err != nil {
		panic(err)
	}
	return v
}

func encodeBody(r clustermesh.Record) ([]byte, error) {
	b, err := encMode.Marshal(body{r.Content, r.UID, r.Problems, r.Late, r.Unasked, r.KeyProven})
	if err != nil {
		return nil, fmt.Errorf("encode the record of %s: %w", r.Origin, err)
	}
	return b, nil
}

// messageBytes bounds the records in one message, in bytes.
const messageBytes = 256 << 10

// messages returns what is written of a turn after another one; of a turn as a whole, if before is nil.
func messages(before, after *Turn, seq uint64, item *api.HistoryItem) (out []message, err error) {
	whole := before == nil
	if whole {
		before = &Turn{}
	}
	m := message{Whole: whole}
	size := 0
	next := func() {
		m.Seq, m.At, m.Start, m.Error = seq, after.Time().UnixNano(), after.Start, after.Error
		out, m, size = append(out, m), message{}, 0
	}
	if whole || !sameSettings(before, after) {
		if m.Settings, err = encMode.Marshal(settingsOf(after)); err != nil {
			return nil, fmt.Errorf("encode the settings: %w", err)
		}
	}
	a, b := &before.Inputs.State, &after.Inputs.State
	for _, o := range sorted(b.Records.Since(a.Records)) {
		r, held := b.Records.Lookup(o)
		if !held {
			m.Gone = append(m.Gone, o)
			continue
		}
		c, err := changeOf(a.Records, r)
		if err != nil {
			return nil, err
		}
		if m.Records = append(m.Records, c); size+len(c.Body) > messageBytes {
			next()
			continue
		}
		size += len(c.Body)
	}
	for _, o := range sorted(b.Contacts.Since(a.Contacts)) {
		c, is := b.Contacts.Lookup(o)
		m.Contacts = append(m.Contacts, contactChange{Cluster: o.Cluster, Node: o.Node, Contact: uint8(c), Gone: !is})
	}
	for _, o := range sorted(b.Proven.Since(a.Proven)) {
		m.Proven = append(m.Proven, provenChange{o, b.Proven.Get(o)})
	}
	if item != nil {
		if m.Item, err = encMode.Marshal(item); err != nil {
			return nil, fmt.Errorf("encode the item: %w", err)
		}
	}
	next()
	for i := range out[:len(out)-1] {
		out[i].More = true
	}
	return out, nil
}

func changeOf(before clustermesh.ByOrigin[clustermesh.Record], r clustermesh.Record) (recordChange, error) {
	c := recordChange{Origin: r.Origin, Stamp: r.Stamp}
	now, err := encodeBody(r)
	if err != nil {
		return c, err
	}
	var was []byte
	if old, is := before.Lookup(r.Origin); is {
		if was, err = encodeBody(old); err != nil {
			return c, err
		}
	}
	head, tail := common(was, now)
	c.Head, c.Tail, c.Body = uint32(head), uint32(tail), now[head:len(now)-tail]
	return c, nil
}

// common returns how many bytes two texts have in common at the beginning, and then at the end.
func common(a, b []byte) (head, tail int) {
	most := min(len(a), len(b))
	for head < most && a[head] == b[head] {
		head++
	}
	for tail < most-head && a[len(a)-1-tail] == b[len(b)-1-tail] {
		tail++
	}
	return head, tail
}

// patch is the inverse of changeOf: it returns the bytes after the change.
func (c recordChange) patch(was []byte) ([]byte, error) {
	head, tail := int(c.Head), int(c.Tail)
	if head > len(was) || tail > len(was)-head {
		return nil, fmt.Errorf("the record of %s: it is a change of another one", c.Origin)
	}
	return slices.Concat(was[:head], c.Body, was[len(was)-tail:]), nil
}

func sorted(origins func(func(clustermesh.Origin) bool)) []clustermesh.Origin {
	return slices.SortedFunc(origins, clustermesh.Origin.Compare)
}

// itemOf reads the item of a message, if it has one.
func (m message) itemOf() (item api.HistoryItem, has bool, err error) {
	if len(m.Item) == 0 {
		return item, false, nil
	}
	if err := decMode.Unmarshal(m.Item, &item); err != nil {
		return item, false, fmt.Errorf("decode the item: %w", err)
	}
	item.Seq, item.Time, item.Error = m.Seq, time.Unix(0, m.At), m.Error
	return item, true, nil
}
