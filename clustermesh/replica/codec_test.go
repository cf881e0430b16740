package replica

import (
	"bytes"
	"net/netip"
	"reflect"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/fxamacker/cbor/v2"

	"strait.io/strait/clustermesh"
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
				InternalTrafficPolicy: "Cluster", TrafficDistribution: "PreferSameZone", Families: []clustermesh.Family{clustermesh.IPv6, clustermesh.IPv4},
				Labels: map[string]string{"a/b": "c"}, Annotations: map[string]string{"note": "any text, ä"}}},
			Allocations: []clustermesh.Allocation{{Service: serve, IP: netip.MustParseAddr("241.0.0.1")}},
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
		&Announce{offers},
		&Want{[]clustermesh.Origin{a.Record.Origin, b.Record.Origin}},
		&Digest{[]ClusterSum{{Cluster: "us-east", Sum: [16]byte{1}}, {Cluster: "eu"}}},
		&Vector{[]ClusterVector{{Cluster: "us-east", Offers: offers}, {Cluster: "eu"}}},
		&Agree{},
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
		e, err := decodeEntry(sent)
		if err != nil {
			t.Fatal(err)
		}
		r := New(Config{Self: clustermesh.Origin{Cluster: "eu", Node: "n3"}}, nil)
		r.SetMembers([]Peer{by, to})
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
	if m, err := Decode(mustMarshal(t, map[int]any{1: 1, 2: 7, 3: "deltas"})); err != nil || m.Kind() != 7 {
		t.Errorf("an unknown kind: %v, %v", m, err)
	}
	if _, err := Decode(mustMarshal(t, map[int]any{1: 2, 2: 1, 3: "x"})); err == nil {
		t.Error("another version of the envelope was read")
	}
}

// What a leader says is bounded: it ends in API objects and kernel maps of every cluster.
func TestValidateServices(t *testing.T) {
	many := map[string]string{}
	for i := range 129 {
		many["k"+strconv.Itoa(i)] = ""
	}
	export := func(f func(*clustermesh.Export)) func(*clustermesh.Content) {
		return func(c *clustermesh.Content) { f(&c.Exports[0]) }
	}
	global := func(f func(*clustermesh.Global)) func(*clustermesh.Content) {
		return func(c *clustermesh.Content) { f(&c.Globals[0]) }
	}
	for name, change := range map[string]func(*clustermesh.Content){
		"export without a name":      export(func(e *clustermesh.Export) { e.Service.Name = "" }),
		"export's port zero":         export(func(e *clustermesh.Export) { e.Ports[0].Port = 0 }),
		"export's port name":         export(func(e *clustermesh.Export) { e.Ports[0].Name = "a b" }),
		"export's appProtocol":       export(func(e *clustermesh.Export) { e.Ports[0].AppProtocol = strings.Repeat("x", 318) }),
		"affinity beyond a day":      export(func(e *clustermesh.Export) { e.AffinitySeconds = 86401 }),
		"long type":                  export(func(e *clustermesh.Export) { e.Type = clustermesh.ServiceType(strings.Repeat("x", 65)) }),
		"policy with a line break":   export(func(e *clustermesh.Export) { e.InternalTrafficPolicy = "a\nb" }),
		"long distribution":          export(func(e *clustermesh.Export) { e.TrafficDistribution = strings.Repeat("x", 65) }),
		"unknown family":             export(func(e *clustermesh.Export) { e.Families[0] = "IPv5" }),
		"a family twice":             export(func(e *clustermesh.Export) { e.Families[0] = clustermesh.IPv4 }),
		"a label without a key":      export(func(e *clustermesh.Export) { e.Labels = map[string]string{"": "x"} }),
		"too many labels":            export(func(e *clustermesh.Export) { e.Labels = many }),
		"annotations too long":       export(func(e *clustermesh.Export) { e.Annotations["x"] = strings.Repeat("x", 64<<10) }),
		"global without a namespace": global(func(g *clustermesh.Global) { g.Service.Namespace = "" }),
		"global's port zero":         global(func(g *clustermesh.Global) { g.Ports[0].Port = 0 }),
		"three addresses":            global(func(g *clustermesh.Global) { g.IPs = append(g.IPs, g.IPs[0]) }),
		"no address":                 global(func(g *clustermesh.Global) { g.IPs[0] = netip.Addr{} }),
		"global's affinity":          global(func(g *clustermesh.Global) { g.Affinity = clustermesh.GlobalAffinity(strings.Repeat("x", 65)) }),
		"global's time-out":          global(func(g *clustermesh.Global) { g.AffinitySeconds = 86401 }),
		"a Node without a name":      func(c *clustermesh.Content) { c.Nodes[0] = "" },
		"a Node's long name":         func(c *clustermesh.Content) { c.Nodes[1] = clustermesh.NodeName(strings.Repeat("x", 254)) },
		"a Node twice":               func(c *clustermesh.Content) { c.Nodes[1] = c.Nodes[0] },
		"Nodes in disorder":          func(c *clustermesh.Content) { slices.Reverse(c.Nodes) },
	} {
		rec := leaderRecord()
		change(&rec.Content)
		if validate(rec) == nil {
			t.Errorf("%s: let in", name)
		}
	}
	newer := leaderRecord()
	newer.Content.Exports[0].TrafficDistribution, newer.Content.Globals[0].Affinity = "PreferMoon", "moon"
	newer.Content.Exports[0].Ports = nil // headless without ports
	if err := validate(newer); err != nil {
		t.Errorf("a newer build's words: %v", err)
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
	cases := map[string]func(*clustermesh.Record){
		"no cluster":         func(r *clustermesh.Record) { r.Origin.Cluster = "" },
		"slash in a name":    func(r *clustermesh.Record) { r.Origin.Node = "a/b"; r.Content.Node.Name = "a/b" },
		"epoch zero":         func(r *clustermesh.Record) { r.Stamp.Epoch = 0 },
		"epoch too large":    func(r *clustermesh.Record) { r.Stamp.Epoch = 1 << 63 },
		"another's name":     func(r *clustermesh.Record) { r.Content.Node.Name = "n2" },
		"exports of a node":  func(r *clustermesh.Record) { r.Content.Exports = leaderRecord().Content.Exports },
		"no address":         func(r *clustermesh.Record) { r.Content.Endpoints[0].Addr = netip.Addr{} },
		"mapped address":     func(r *clustermesh.Record) { r.Content.Endpoints[0].Addr = netip.MustParseAddr("::ffff:1.2.3.4") },
		"zoned address":      func(r *clustermesh.Record) { r.Content.Node.Addresses[0] = netip.MustParseAddr("fe80::1%eth0") },
		"bad prefix":         func(r *clustermesh.Record) { r.Content.Node.Prefixes[0] = netip.Prefix{} },
		"no service":         func(r *clustermesh.Record) { r.Content.Endpoints[0].Service.Name = "" },
		"port zero":          func(r *clustermesh.Record) { r.Content.Endpoints[0].Ports[0].Port = 0 },
		"another's endpoint": func(r *clustermesh.Record) { r.Content.Endpoints[0].Node = "n2" },
		"claims itself":      func(r *clustermesh.Record) { r.Content.Silent[0].Origin = r.Origin },
		"claims a cluster":   func(r *clustermesh.Record) { r.Content.Silent[0].Origin.Node = "" },
		"globals of a node":  func(r *clustermesh.Record) { r.Content.Globals = leaderRecord().Content.Globals },
		"nodes of a node":    func(r *clustermesh.Record) { r.Content.Nodes = leaderRecord().Content.Nodes },
		"node of a cluster":  func(r *clustermesh.Record) { r.Origin.Node = "" },
	}
	if err := validate(full()); err != nil {
		t.Errorf("a full record: %v", err)
	}
	if err := validate(leaderRecord()); err != nil {
		t.Errorf("a leader's record: %v", err)
	}
	for name, change := range cases {
		rec := full()
		change(&rec)
		if validate(rec) == nil {
			t.Errorf("%s: let in", name)
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
		r.SetMembers([]Peer{{Cluster: "us-east", Node: "n2"}, {Cluster: "eu", Node: "n3"}})
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
			if got := r.Records()[self].Content; !sameContent(got, own) {
				t.Fatalf("own record became %+v", got)
			}
		}
	})
}
