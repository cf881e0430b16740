package replica

import (
	"bytes"
	"net/netip"
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/fxamacker/cbor/v2"

	"strait.io/strait/clustermesh"
	"strait.io/strait/clustermesh/record"
	"strait.io/strait/clustermesh/topology"
	"strait.io/strait/internal/key"
	"strait.io/strait/internal/l4"
)

// full is a record of a node with every field set.
func full() clustermesh.Record {
	o := clustermesh.Origin{Cluster: "us-east", Node: "n1"}
	serve := clustermesh.ServiceName{Namespace: "default", Name: "serve"}
	return clustermesh.Record{Origin: o, Stamp: clustermesh.Stamp{Epoch: 7, Version: 3}, Content: clustermesh.Content{
		Node: &clustermesh.Node{
			Name: "n1", Locality: clustermesh.Locality{Region: "r", Zone: "z"},
			Addresses: []netip.Addr{netip.MustParseAddr("192.0.2.1"), netip.MustParseAddr("2001:db8::1")},
			Prefixes:  []netip.Prefix{netip.MustParsePrefix("10.1.0.0/24"), netip.MustParsePrefix("fd00::/64")},
			Inside:    netip.MustParseAddr("10.1.0.1"), PublicKey: key.Public{1, 2, 3}, WireGuardPort: 51820, GossipPort: 7946,
		},
		Endpoints: []clustermesh.Endpoint{{
			Service: serve, Addr: netip.MustParseAddr("10.1.0.5"), Node: "n1", Zone: "z", Hostname: "h", Pod: "p",
			Ports: []clustermesh.EndpointPort{{Name: "http", Proto: l4.TCP, Port: 8080}}, Ready: true, Serving: true, Terminating: true,
		}},
		Silent: []clustermesh.Silence{{Origin: clustermesh.Origin{Cluster: "us-east", Node: "n2"}, Epoch: 5}},
	}}
}

func leaderRecord() clustermesh.Record {
	serve := clustermesh.ServiceName{Namespace: "default", Name: "serve"}
	return clustermesh.Record{
		Origin: clustermesh.Origin{Cluster: "us-east"}, Stamp: clustermesh.Stamp{Epoch: 9, Version: 1},
		Content: clustermesh.Content{
			Exports: []clustermesh.Export{{Service: serve, Type: clustermesh.ClusterSetIP, Created: 1, AffinitySeconds: 2,
				Ports:                 []clustermesh.ServicePort{{Name: "http", Proto: l4.TCP, Port: 80, AppProtocol: "http"}},
				InternalTrafficPolicy: "Cluster", TrafficDistribution: "PreferSameZone", Families: []clustermesh.Family{clustermesh.IPv6, clustermesh.IPv4}, FamiliesDeclared: true,
				Labels: map[string]string{"a/b": "c"}, Annotations: map[string]string{"note": "any text, ä"}}},
			Allocations: []clustermesh.Allocation{{Service: serve, IP: netip.MustParseAddr("241.0.0.1")}},
			Results:     []clustermesh.PolicyResult{{Policy: "stars", Mirrored: 2, Imported: 1, SkippedMore: 3, Skipped: []clustermesh.SkippedSource{{Source: "c/ns/s", Reason: "Conflict", Message: "is taken, ä"}}}},
			Config: []clustermesh.ConfigObject{{Kind: "MultiClusterService.networking.gke.io", Name: serve, Created: 4,
				Annotations: map[string]string{"networking.gke.io/app-protocols": `{"web": "HTTP2"}`}, Spec: `{"template":{"spec":{"selector":{"app":"cart, ä"}}}}`}},
			Globals: []clustermesh.Global{{Service: serve, Ports: []clustermesh.ServicePort{{Name: "http", Proto: l4.TCP, Port: 80}},
				IPs: []netip.Addr{netip.MustParseAddr("10.96.0.1"), netip.MustParseAddr("fd00:96::1")}, Shared: true,
				Affinity: clustermesh.AffinityLocal, AffinitySeconds: 3, InternalTrafficPolicy: "Local", TrafficDistribution: "PreferSameNode"}},
			Nodes: []clustermesh.NodeName{"n1", "n2"},
		},
	}
}

func mustEntry(t testing.TB, rec clustermesh.Record) Entry {
	t.Helper()
	e, err := NewEntry(rec)
	if err != nil {
		t.Fatal(err)
	}
	return e
}

// examples are one message of each kind.
func examples(t testing.TB) []Message {
	a, b := mustEntry(t, full()), mustEntry(t, leaderRecord())
	offers := offersOf([]Entry{a, b})
	return []Message{
		&Snapshot{Entries: []Entry{a, b}},
		&Announce{Offers: offers},
		&Want{[]clustermesh.Origin{a.Record.Origin, b.Record.Origin}},
		&Digest{Clusters: []ClusterSum{{Cluster: "us-east", Sum: [16]byte{1}}, {Cluster: "eu"}}},
		&Digest{Sender: Sender{Unsynced: true}},
		&Vector{Clusters: []ClusterVector{{Cluster: "us-east", Offers: offers}, {Cluster: "eu"}}},
		&Vector{Sender: Sender{Unsynced: true}},
		&Agree{},
		&Agree{Sender{Unsynced: true}},
		&Hello{Speaks: SpeaksRepair},
		&Root{Sum: [16]byte{1}, Sender: Sender{Unsynced: true}},
		&Sums{Of: []ClusterHash{{1}, {2}}},
		&Buckets{Of: []ClusterBuckets{{Cluster: "us-east", Sums: make([]byte, buckets*short)}, {Hash: []byte{1, 2, 3, 4, 5, 6}}}},
		&Listing{Of: []ClusterListing{{Cluster: "us-east", Buckets: 3, Nodes: []NodeVersion{{Node: "n1", Version: a.version}, {Version: b.version}}}}},
		&Delta{[]DeltaItem{{Of: identify(a.Record.Origin), Version: a.version, Base: 7, Record: []byte{0, 0, 9}, Seal: []byte{1, 2}}}},
	}
}

func TestRoundTrip(t *testing.T) {
	for _, m := range examples(t) {
		b, err := Encode(m)
		if err != nil {
			t.Fatalf("%T: %v", m, err)
		}
		got, err := Decode(b)
		if err != nil {
			t.Fatalf("%T: %v", m, err)
		}
		if !reflect.DeepEqual(got, m) {
			t.Errorf("%T: got %+v, want %+v", m, got, m)
		}
	}
}

// TestBytesAreMadeAnew: a record is passed on in the bytes that came, but is not kept a second time in bytes where it makes
// the same ones again.
func TestBytesAreMadeAnew(t *testing.T) {
	by, to := Peer{Cluster: "eu", Node: "n1"}, Peer{Cluster: "eu", Node: "n2"}
	for _, rec := range []clustermesh.Record{full(), leaderRecord()} {
		sent, err := encMode.Marshal(mustEntry(t, rec).wire())
		if err != nil {
			t.Fatal(err)
		}
		e, err := decodeEntry(sent, new(int))
		if err != nil {
			t.Fatal(err)
		}
		r := New(Config{Self: clustermesh.Origin{Cluster: "eu", Node: "n3"}}, nil)
		r.SetMembers(topology.View{Members: []Peer{by, to}})
		out := r.Receive(by, &Snapshot{Entries: []Entry{e}})
		if len(out.Send) != 1 || &out.Send[0].Message.(*Snapshot).Entries[0].raw[0] != &sent[0] {
			t.Errorf("%s: not passed on in the bytes that came", rec.Origin)
		}
		held := r.entries[rec.Origin]
		if held.raw != nil || held.Size() != len(sent) {
			t.Errorf("%s: %d bytes are kept, its size is %d, want none kept and %d", rec.Origin, len(held.raw), held.Size(), len(sent))
		}
		if again, err := encMode.Marshal(held.wire()); err != nil || !bytes.Equal(again, sent) {
			t.Errorf("%s: %x became %x (%v)", rec.Origin, sent, again, err)
		}
	}
}

// TestUnknownFieldsPass: a record of a newer build is understood as far as possible, and passed on whole.
func TestUnknownFieldsPass(t *testing.T) {
	raw, err := encMode.Marshal(map[int]any{
		1: map[int]any{1: "c", 2: "n"}, 2: map[int]any{1: 4, 2: 2}, 3: map[int]any{99: "new"}, 98: []int{1},
	})
	if err != nil {
		t.Fatal(err)
	}
	body, _ := encMode.Marshal(map[int]any{1: []cbor.RawMessage{raw}, 97: true})
	b, _ := encMode.Marshal(map[int]any{1: 1, 2: 1, 3: cbor.RawMessage(body), 96: "later"})
	m, err := Decode(b)
	if err != nil {
		t.Fatal(err)
	}
	s := m.(*Snapshot)
	if len(s.Entries) != 1 || s.Entries[0].Record.Stamp.Epoch != 4 {
		t.Fatalf("got %+v", s)
	}
	again, err := Encode(s)
	if err != nil || !bytes.Contains(again, raw) {
		t.Errorf("the unknown fields were not passed on: %v", err)
	}
	if m, err := Decode(mustMarshal(t, map[int]any{1: 1, 2: 99, 3: "what a later build sends"})); err != nil || m.Kind() != 99 {
		t.Errorf("an unknown kind: %v, %v", m, err)
	}
	if _, err := Decode(mustMarshal(t, map[int]any{1: 2, 2: 1, 3: "x"})); err == nil {
		t.Error("another version of the envelope was read")
	}
}

// A record of which objects cannot be used counts without them, and is passed on whole: the versions of replicas must agree,
// and a newer build may understand more.
func TestUnusableObjectsAreLeftOut(t *testing.T) {
	rec := full()
	good := rec.Content.Node.Prefixes
	rec.Content.Node.Prefixes = append(slices.Clone(good), netip.MustParsePrefix("0.0.0.0/0"))
	raw := mustMarshal(t, rec)
	m, err := Decode(mustMarshal(t, envelope[any]{Version: 1, Kind: KindSnapshot, Body: snapshotBody[any]{Records: []any{cbor.RawMessage(raw)}}}))
	if err != nil {
		t.Fatal(err)
	}
	s := m.(*Snapshot)
	if len(s.Entries) != 1 || len(s.Rejected) > 0 {
		t.Fatalf("let in %v, rejected %v", s.Entries, s.Rejected)
	}
	e := s.Entries[0]
	if got := e.Record.Content; !slices.Equal(got.Node.Prefixes, good) || len(got.Endpoints) != 1 || len(got.Silent) != 1 {
		t.Errorf("the rest of the record became %+v", got)
	}
	if ps := e.Record.Problems; len(ps) != 1 || ps[0].Object != "node us-east/n1" || ps[0].Field != "prefixes[2]" || !strings.Contains(ps[0].Message, "0.0.0.0/0") {
		t.Errorf("Problems %v", ps)
	}
	if again, err := Encode(s); err != nil || !bytes.Contains(again, raw) {
		t.Errorf("it was not passed on as it came: %v", err)
	}
	if whole := entry(rec, raw); e.version != whole.version {
		t.Errorf("its version is %v, the writer's is %v", e.version, whole.version)
	}
	own := mustEntry(t, rec) // what this node itself says wrong does not leave it
	if !slices.Equal(own.Record.Content.Node.Prefixes, good) || len(own.Record.Problems) != 1 || !own.whole {
		t.Errorf("the own record became %+v", own.Record)
	}
}

func mustMarshal(t *testing.T, v any) []byte {
	t.Helper()
	b, err := encMode.Marshal(v)
	if err != nil {
		t.Fatal(err)
	}
	return b
}

func TestValidate(t *testing.T) {
	for name, change := range map[string]func(*clustermesh.Record){
		"no cluster":        func(r *clustermesh.Record) { r.Origin.Cluster = "" },
		"slash in a name":   func(r *clustermesh.Record) { r.Origin.Node = "a/b" },
		"long name":         func(r *clustermesh.Record) { r.Origin.Node = clustermesh.NodeName(strings.Repeat("x", 254)) },
		"epoch zero":        func(r *clustermesh.Record) { r.Stamp.Epoch = 0 },
		"epoch too large":   func(r *clustermesh.Record) { r.Stamp.Epoch = 1 << 63 },
		"version too large": func(r *clustermesh.Record) { r.Stamp.Version = 1 << 63 },
	} {
		rec := full()
		change(&rec)
		if _, err := decodeEntry(mustMarshal(t, rec), new(int)); err == nil {
			t.Errorf("%s: let in", name)
		}
		if _, err := NewEntry(rec); err == nil {
			t.Errorf("%s: written", name)
		}
	}
	for _, rec := range []clustermesh.Record{full(), leaderRecord()} {
		if e, err := decodeEntry(mustMarshal(t, rec), new(int)); err != nil || len(e.Record.Problems) > 0 {
			t.Errorf("%s: %v, %v", rec.Origin, err, e.Record.Problems)
		}
	}
}

func FuzzDecode(f *testing.F) {
	for _, m := range examples(f) {
		b, err := Encode(m)
		if err != nil {
			f.Fatal(err)
		}
		f.Add(b)
	}
	f.Fuzz(func(t *testing.T, b []byte) {
		m, err := Decode(b)
		if err != nil {
			return
		}
		if _, unknown := m.(*Unknown); unknown {
			return
		}
		again, err := Encode(m)
		if err != nil {
			t.Fatalf("what was decoded cannot be encoded: %v", err)
		}
		back, err := Decode(again)
		if err != nil {
			t.Fatalf("what was encoded cannot be decoded: %v", err)
		}
		if s, ok := m.(*Snapshot); ok {
			s.Rejected = nil
			for _, e := range s.Entries {
				if err := validate(e.Record); err != nil {
					t.Fatalf("let in: %v", err)
				}
				if _, left := record.Usable(e.Record.Origin, e.Record.Content); len(left) > 0 {
					t.Fatalf("let in: %v", left)
				}
			}
		}
		if !reflect.DeepEqual(m, back) {
			t.Fatalf("%+v came back as %+v", m, back)
		}
	})
}

// FuzzReceive: no message makes a replica panic, say something else of itself, or send what is invalid.
func FuzzReceive(f *testing.F) {
	for _, m := range examples(f) {
		b, err := Encode(m)
		if err != nil {
			f.Fatal(err)
		}
		f.Add(b, b)
	}
	self := full().Origin
	own := full().Content
	f.Fuzz(func(t *testing.T, first, second []byte) {
		r := New(Config{Self: self, Epoch: 2}, nil)
		r.SetMembers(topology.View{Members: []Peer{{Cluster: "us-east", Node: "n2"}, {Cluster: "eu", Node: "n3"}}})
		r.Publish(own)
		for _, b := range [][]byte{first, second} {
			m, err := Decode(b)
			if err != nil {
				continue
			}
			out := r.Receive(Peer{Cluster: "eu", Node: "n3"}, m)
			for _, e := range out.Send {
				if _, err := Encode(e.Message); err != nil {
					t.Fatalf("answer cannot be encoded: %v", err)
				}
			}
			if got := r.Records().Get(self).Content; !sameContent(got, own) {
				t.Fatalf("own record became %+v", got)
			}
		}
	})
}
