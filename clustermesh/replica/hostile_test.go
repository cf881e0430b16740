package replica

import (
	"fmt"
	"net/netip"
	"runtime"
	"strings"
	"testing"

	"github.com/fxamacker/cbor/v2"

	"strait.io/strait/clustermesh"
	"strait.io/strait/internal/l4"
)

// hostile returns a frame of about a size: records of an origin whose content has one field.
func hostile(t *testing.T, o clustermesh.Origin, field uint64, value any, size int) []byte {
	t.Helper()
	raw := must(cbor.Marshal(value))
	var records []any
	for n := 0; n+len(raw) < size || n == 0; n += len(raw) + 30 {
		records = append(records, map[uint64]any{
			1: o, 2: clustermesh.Stamp{Epoch: uint64(len(records)) + 1, Version: 1}, 3: map[uint64]any{field: cbor.RawMessage(raw)},
		})
	}
	b, err := cbor.Marshal(envelope[any]{Version: wireVersion, Kind: KindSnapshot, Body: map[uint64]any{1: records}})
	if err != nil {
		t.Fatal(err)
	}
	return b
}

// times repeats an item as a list.
func times(n int, item any) []cbor.RawMessage {
	raw, out := must(cbor.Marshal(item)), make([]cbor.RawMessage, n)
	for i := range out {
		out[i] = raw
	}
	return out
}

// allocated returns how many bytes a function allocates, in all.
func allocated(f func()) uint64 {
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	f()
	runtime.ReadMemStats(&after)
	return after.TotalAlloc - before.TotalAlloc
}

// TestHostileFrames: a holder of the gossip key can send frames of what costs little on the wire and much in
// memory. One of 15.7 MB of empty endpoints took 5 GB and 14 s. Now what a frame takes in all is bounded,
// whatever is in it, and most of that is free again at the next record. Nothing of it comes into force, and
// people are told who sent it.
func TestHostileFrames(t *testing.T) {
	const most, mega = 1 << 18, 1_000_000
	owner, leader := simOrigin(1), clustermesh.Origin{Cluster: simOrigin(1).Cluster}
	rubbish := map[uint64]any{30: "eleven byte"} // as long as an endpoint
	for _, c := range []struct {
		name  string
		frame []byte
		limit float64
	}{
		{"M3: empty endpoints", hostile(t, owner, 2, times(most, struct{}{}), 15_700_000), 3},
		{"empty endpoints in small records", hostile(t, owner, 2, times(100, struct{}{}), mega), 20},
		{"endpoints that say nothing", hostile(t, owner, 2, times(most, rubbish), 4*mega), 40},
		{"endpoints that say nothing, in small records", hostile(t, owner, 2, times(64, rubbish), 4*mega), 40},
		{"an endpoint of empty ports", hostile(t, owner, 2, []any{map[uint64]any{3: times(most, struct{}{})}}, mega), 3},
		{"empty addresses", hostile(t, owner, 1, map[uint64]any{1: owner.Node, 3: times(most, []byte{})}, mega), 3},
		{"empty exports", hostile(t, leader, 3, times(most, struct{}{}), mega), 3},
		{"empty allocations", hostile(t, leader, 4, times(most, struct{}{}), mega), 3},
		{"empty claims", hostile(t, owner, 5, times(most, struct{}{}), mega), 3},
		{"empty globals", hostile(t, leader, 6, times(most, struct{}{}), mega), 3},
		{"empty names", hostile(t, leader, 7, times(most, ""), mega), 3},
		{"numbers for names", hostile(t, leader, 7, times(most, 1), mega), 20},
		{"empty mirrors", hostile(t, leader, 25, times(most, struct{}{}), mega), 3},
		{"empty configuration", hostile(t, leader, 28, times(most, struct{}{}), mega), 3},
	} {
		r := New(Config{Self: simOrigin(0), Epoch: 1}, nil)
		var out Output
		total := allocated(func() {
			m, err := Decode(c.frame)
			if err != nil {
				t.Fatalf("%s: %v", c.name, err)
			}
			out = r.Receive(simOrigin(2), m)
		})
		ratio := float64(total) / float64(len(c.frame))
		t.Logf("%s: %.1f MB take %.1f MB, %.1f times", c.name, float64(len(c.frame))/1e6, float64(total)/1e6, ratio)
		if ratio > c.limit {
			t.Errorf("%s: %.1f times its size, want %.0f at most", c.name, ratio, c.limit)
		}
		if len(out.Problems) == 0 || !strings.Contains(fmt.Sprint(out.Problems), "record c1") || !strings.Contains(fmt.Sprint(out.Problems), "received from "+simOrigin(2).String()) {
			t.Errorf("%s: no Problem names the record and its sender: %v", c.name, out.Problems)
		}
		for o, rec := range r.Records().All() {
			if len(rec.Content.Endpoints)+len(rec.Content.Exports) > 0 {
				t.Errorf("%s: it is in force for %s", c.name, o)
			}
		}
	}
}

// TestSmallestObjects: what is as short as it can be and means something is received.
func TestSmallestObjects(t *testing.T) {
	s := clustermesh.ServiceName{Namespace: "a", Name: "b"}
	port := []clustermesh.ServicePort{{Port: 1, Proto: l4.TCP}}
	few := netip.MustParseAddr("1.2.3.4")
	for _, rec := range []clustermesh.Record{
		{Origin: clustermesh.Origin{Cluster: "c", Node: "n"}, Content: clustermesh.Content{
			Node: &clustermesh.Node{Name: "n", Addresses: []netip.Addr{few}, Prefixes: []netip.Prefix{netip.PrefixFrom(few, 32)}}, Endpoints: []clustermesh.Endpoint{{Service: s, Addr: few}, {Service: s, Addr: few, Ports: []clustermesh.EndpointPort{{Port: 1, Proto: l4.TCP}}}},
			Silent:     []clustermesh.Silence{{Origin: clustermesh.Origin{Cluster: "d", Node: "m"}, Epoch: 1}},
			GossipKeys: []string{"k"},
		}},
		{Origin: clustermesh.Origin{Cluster: "c"}, Content: clustermesh.Content{
			Exports: []clustermesh.Export{{Service: s, Type: clustermesh.Headless}}, Mirrors: []clustermesh.Export{{Service: s, Type: clustermesh.Headless, Ports: port}},
			Allocations: []clustermesh.Allocation{{Service: s, IP: few}},
			Globals:     []clustermesh.Global{{Service: s}, {Service: s, Ports: port, To: []clustermesh.ClusterName{"x"}}},
			Late:        []clustermesh.Late{{Cluster: "c", Service: s}},
			Nodes:       []clustermesh.NodeName{"a", "b"},
			Drains:      []clustermesh.NodeDrain{{Node: "n"}},
			Results:     []clustermesh.PolicyResult{{Policy: "p"}},
			Withdrawn:   []clustermesh.Withdrawal{{Node: "n"}},
			Config:      []clustermesh.ConfigObject{{Kind: "k", Name: s, Spec: "{}"}},
		}},
	} {
		rec.Stamp = clustermesh.Stamp{Epoch: 1, Version: 1}
		if err := dense(must(encMode.Marshal(rec))); err != nil {
			t.Errorf("%s: %v", rec.Origin, err)
		}
	}
}

// TestFaultsAreCounted: a record with too much that cannot be used is refused as a whole, so what its origin
// said before stays. Records without faults that come with it are received.
func TestFaultsAreCounted(t *testing.T) {
	bad := func(n int) clustermesh.Record {
		rec := clustermesh.Record{Origin: simOrigin(1), Stamp: clustermesh.Stamp{Epoch: 2, Version: 1}}
		for range n {
			rec.Content.Endpoints = append(rec.Content.Endpoints, clustermesh.Endpoint{Addr: netip.MustParseAddr("127.0.0.1"), Pod: "some pod"})
		}
		return rec
	}
	for _, c := range []struct{ faults, entries int }{{maxFaults, 2}, {maxFaults + 1, 1}} {
		records := []any{bad(c.faults), clustermesh.Record{Origin: simOrigin(2), Stamp: clustermesh.Stamp{Epoch: 1, Version: 1}}}
		m, err := Decode(must(cbor.Marshal(envelope[any]{Version: wireVersion, Kind: KindSnapshot, Body: map[uint64]any{1: records}})))
		if err != nil {
			t.Fatal(err)
		}
		s := m.(*Snapshot)
		if len(s.Entries) != c.entries || len(s.Rejected) != 2-c.entries {
			t.Errorf("%d faults: %d entries, rejected %v", c.faults, len(s.Entries), s.Rejected)
		}
		if len(s.Rejected) > 0 && (s.Rejected[0].Origin != simOrigin(1) || s.Rejected[0].Version.Epoch != 2) {
			t.Errorf("rejected is %+v", s.Rejected[0])
		}
	}
}
