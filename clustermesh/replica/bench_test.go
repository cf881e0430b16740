package replica

import (
	"fmt"
	"testing"

	"strait.io/strait/clustermesh"
	"strait.io/strait/clustermesh/topology"
)

// BenchmarkReceive is what a record costs a daemon to which it is pushed: to read it, to hold it, and to write it for
// the peers that it is passed on to.
func BenchmarkReceive(b *testing.B) {
	small := full()
	node, leader := ofNode(1), ofLeader()
	for _, bc := range []struct {
		name string
		rec  clustermesh.Record
	}{{"one endpoint", small}, {"1,000 endpoints", node}, {"10,000 exports", leader}} {
		b.Run(bc.name, func(b *testing.B) {
			const versions = 16
			frames := make([][]byte, versions)
			for i := range frames {
				rec := bc.rec
				rec.Stamp.Version += uint64(i)
				frame, err := Encode(&Snapshot{Entries: []Entry{mustEntry(b, rec)}})
				if err != nil {
					b.Fatal(err)
				}
				frames[i] = frame
			}
			var peers []Peer
			for i := range 10 {
				peers = append(peers, Peer{Cluster: "d", Node: clustermesh.NodeName(fmt.Sprint("n", i))})
			}
			b.SetBytes(int64(len(frames[0])))
			b.ReportAllocs()
			var r *Replica
			for i := 0; b.Loop(); i++ {
				if i%versions == 0 {
					r = New(Config{Self: clustermesh.Origin{Cluster: "d", Node: "self"}}, nil)
					r.SetMembers(topology.View{Members: peers})
				}
				m, err := Decode(frames[i%versions])
				if err != nil {
					b.Fatal(err)
				}
				out := r.Receive(peers[0], m)
				if len(out.Changed) != 1 || len(out.Send) == 0 {
					b.Fatalf("%+v", out)
				}
				if _, err := Encode(out.Send[0].Message); err != nil { // one for all peers
					b.Fatal(err)
				}
			}
		})
	}
}

// BenchmarkDense measures what is looked at before a record of 1,000 endpoints is decoded, and
// BenchmarkDecodeEntry all of that.
func BenchmarkDense(b *testing.B) {
	raw := must(encMode.Marshal(ofNode(1)))
	b.SetBytes(int64(len(raw)))
	for b.Loop() {
		if err := dense(raw); err != nil {
			b.Fatal(err)
		}
	}
}

func BenchmarkDecodeEntry(b *testing.B) {
	raw := must(encMode.Marshal(ofNode(1)))
	b.SetBytes(int64(len(raw)))
	for b.Loop() {
		if _, err := decodeEntry(raw, new(int)); err != nil {
			b.Fatal(err)
		}
	}
}

// BenchmarkPublishAgain is what a leader pays in each turn for a record of 10,000 exports that did not
// change: the lists are those of before, or others that are equal.
func BenchmarkPublishAgain(b *testing.B) {
	for _, bc := range []struct {
		name string
		next func(clustermesh.Content) clustermesh.Content
	}{
		{"the same lists", func(c clustermesh.Content) clustermesh.Content { return c }},
		{"equal lists", func(clustermesh.Content) clustermesh.Content { return ofLeader().Content }},
	} {
		b.Run(bc.name, func(b *testing.B) {
			r := New(Config{Self: clustermesh.Origin{Cluster: "c1", Node: "n1"}, Epoch: 1}, nil)
			first := ofLeader().Content
			r.PublishCluster(first, 1)
			again := bc.next(first)
			for b.Loop() {
				r.PublishCluster(again, 1)
			}
			if e := r.entries[clustermesh.Origin{Cluster: "c1"}]; e.Record.Stamp.Version != 1 {
				b.Fatalf("it was written again: %s", e.Record.Stamp)
			}
		})
	}
}
