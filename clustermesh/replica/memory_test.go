package replica

import (
	"fmt"
	"net/netip"
	"runtime"
	"testing"

	"strait.io/strait/clustermesh"
	"strait.io/strait/internal/l4"
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

// TestMemory bounds what the records of 10,000 Services with 100,000 endpoints cost a daemon that received them. It is
// a part of the 150 MB that the daemon may take.
func TestMemory(t *testing.T) {
	const nodes = 100
	r := New(Config{Self: clustermesh.Origin{Cluster: "c1", Node: "self"}}, nil)
	records := []clustermesh.Record{ofLeader()}
	for n := range nodes {
		records = append(records, ofNode(n))
	}
	var before, after runtime.MemStats
	runtime.GC()
	runtime.ReadMemStats(&before)
	for _, rec := range records {
		frame, err := Encode(&Snapshot{Entries: []Entry{mustEntry(t, rec)}})
		if err != nil {
			t.Fatal(err)
		}
		m, err := Decode(frame)
		if err != nil {
			t.Fatal(err)
		}
		r.Receive(Peer{Cluster: "c1", Node: "peer"}, m)
	}
	runtime.GC()
	runtime.GC() // what encodes is in a pool until the second
	runtime.ReadMemStats(&after)
	mb := float64(after.HeapAlloc-before.HeapAlloc) / 1e6
	t.Logf("%.1f MB for %d endpoints", mb, nodes*1000)
	if mb > 25 {
		t.Error("more than 25 MB")
	}
	if len(r.Records()) != len(records) {
		t.Errorf("%d records", len(r.Records()))
	}
	runtime.KeepAlive(r)
	runtime.KeepAlive(records)
}
