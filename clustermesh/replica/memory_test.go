package replica

import (
	"fmt"
	"net/netip"
	"runtime"
	"testing"

	"strait.io/strait/clustermesh"
	"strait.io/strait/internal/l4"
	"strait.io/strait/internal/testutil"
)

// ofNode is what one of 100 nodes says in a cluster of 10,000 Services with 10 endpoints each.
func ofNode(n int) clustermesh.Record {
	node := clustermesh.NodeName(fmt.Sprint("node-", n))
	c := clustermesh.Content{Node: &clustermesh.Node{Name: node}}
	for i := range 1000 {
		service := fmt.Sprint("service-", n%10*1000+i)
		c.Endpoints = append(c.Endpoints, clustermesh.Endpoint{
			Service: clustermesh.ServiceName{Namespace: "default", Name: service}, Addr: netip.AddrFrom4([4]byte{10, byte(n), byte(i >> 8), byte(i)}),
			Ports: []clustermesh.EndpointPort{{Name: "http", Proto: l4.TCP, Port: 8080}},
			Node:  node, Zone: "zone-1", Pod: fmt.Sprintf("%s-7c9d8f6b5-x%02dk", service, n), Ready: true, Serving: true,
		})
	}
	return clustermesh.Record{Origin: clustermesh.Origin{Cluster: "c1", Node: node}, Stamp: clustermesh.Stamp{Epoch: 1, Version: 1}, Content: c}
}

// ofLeader is what the leader says there.
func ofLeader() clustermesh.Record {
	var c clustermesh.Content
	for i := range 10_000 {
		c.Exports = append(c.Exports, clustermesh.Export{
			Service: clustermesh.ServiceName{Namespace: "default", Name: fmt.Sprint("service-", i)}, Type: clustermesh.ClusterSetIP,
			Ports: []clustermesh.ServicePort{{Name: "http", Proto: l4.TCP, Port: 80}}, Families: []clustermesh.Family{clustermesh.IPv4},
		})
	}
	return clustermesh.Record{Origin: clustermesh.Origin{Cluster: "c1"}, Stamp: clustermesh.Stamp{Epoch: 1, Version: 1}, Content: c}
}

// TestReplicaHeap bounds what the records of 10,000 Services with 100,000 endpoints cost a daemon that received them: about
// what the decoded records take that came, so no second form of any.
func TestReplicaHeap(t *testing.T) {
	const nodes = 100
	records := []clustermesh.Record{ofLeader()}
	for n := range nodes {
		records = append(records, ofNode(n))
	}
	received := func(take func(Message)) {
		for _, rec := range records {
			frame, err := Encode(&Snapshot{Entries: []Entry{mustEntry(t, rec)}})
			if err != nil {
				t.Fatal(err)
			}
			m, err := Decode(frame)
			if err != nil {
				t.Fatal(err)
			}
			take(m)
		}
	}
	plain := testutil.Heap(func() any {
		var all []clustermesh.Record
		received(func(m Message) { all = append(all, m.(*Snapshot).Entries[0].Record) })
		return all
	})
	kept := testutil.Heap(func() any {
		r := New(Config{Self: clustermesh.Origin{Cluster: "c1", Node: "self"}}, nil)
		received(func(m Message) { r.Receive(Peer{Cluster: "c1", Node: "peer"}, m) })
		if r.Records().Len() != len(records) {
			t.Errorf("%d records", r.Records().Len())
		}
		return r
	})
	t.Logf("%.1f MB for %d endpoints, where the records that came take %.1f: %.2f times", kept/1e6, nodes*1000, plain/1e6, kept/plain)
	if kept > 1.2*plain {
		t.Error("more than 1.2 times the records")
	}
	runtime.KeepAlive(records)
}
