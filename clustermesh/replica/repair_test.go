package replica

import (
	"fmt"
	"slices"
	"testing"

	"strait.io/strait/clustermesh"
	"strait.io/strait/clustermesh/topology"
)

// large is what is held in a clusterset: of each node a record with pods.
func large(t *testing.T, clusters, nodes int) (all []Entry) {
	for c := range clusters {
		for n := range nodes {
			o := clustermesh.Origin{Cluster: clustermesh.ClusterName(fmt.Sprintf("prod-eu-%d", c)), Node: clustermesh.NodeName(fmt.Sprintf("ip-10-%d-%d.internal", c, n))}
			e := mustEntry(t, clustermesh.Record{Origin: o, Stamp: clustermesh.Stamp{Epoch: 1_790_000_000_000_000_000, Version: uint64(n) + 1}, Content: pods(o, 2, n)})
			all = append(all, e.Sealed(sealOf(e)))
		}
	}
	return all
}

// exchanged is what two replicas that understand all send each other until all is quiet, by kind,
// in bytes.
func exchanged(t *testing.T, a, b *Replica, open Output) (bytes map[Kind]int, all int) {
	t.Helper()
	bytes = map[Kind]int{}
	type mail struct {
		to *Replica
		m  Message
	}
	var post []mail
	send := func(from *Replica, out Output) {
		to := a
		if from == a {
			to = b
		}
		for _, e := range out.Send {
			text, err := Encode(e.Message)
			if err != nil {
				t.Fatal(err)
			}
			m, err := Decode(text)
			if err != nil {
				t.Fatal(err)
			}
			bytes[m.Kind()] += len(text)
			all += len(text)
			post = append(post, mail{to, m})
		}
	}
	send(a, open)
	for len(post) > 0 {
		m := post[0]
		post = post[1:]
		from := a.self
		if m.to == a {
			from = b.self
		}
		send(m.to, m.to.Receive(from, m.m))
	}
	return bytes, all
}

// acquainted are two replicas that hold something, and whose stream is whole.
func acquainted(t *testing.T, held, others []Entry) (a, b *Replica) {
	x, y := clustermesh.Origin{Cluster: "prod-eu-0", Node: "ip-10-0-0.internal"}, clustermesh.Origin{Cluster: "prod-eu-1", Node: "ip-10-1-0.internal"}
	a, b = New(Config{Self: x, Epoch: 1, Complete: true}, held), New(Config{Self: y, Epoch: 1, Complete: true}, others)
	for r, other := range map[*Replica]Peer{a: y, b: x} {
		r.SetMembers(topology.View{Members: []Peer{x, y}})
		r.Connected(other, true)
		r.Receive(other, &Hello{Speaks: SpeaksRepair})
	}
	return a, b
}

// TestRepairIsSmall: one record that differs is found in few bytes, among however many.
func TestRepairIsSmall(t *testing.T) {
	held := large(t, 100, 100)
	changed := held[4711].Record
	changed.Stamp.Version++
	changed.Content = pods(changed.Origin, 2, 9999)
	e := mustEntry(t, changed)
	others := append([]Entry{e.Sealed(sealOf(e))}, held...)
	for _, swapped := range []bool{false, true} {
		a, b := acquainted(t, held, others)
		if swapped {
			a, b = acquainted(t, others, held)
		}
		bytes, all := exchanged(t, a, b, a.Dropped(b.self))
		record := bytes[KindSnapshot]
		t.Logf("%d bytes besides the record: %v", all-record, bytes)
		if all-record > 2000 {
			t.Errorf("%d bytes", all-record)
		}
		if a.root() != b.root() {
			t.Error("they differ afterwards")
		}
		if bytes, all := exchanged(t, a, b, a.Dropped(b.self)); all > 100 {
			t.Errorf("to see that nothing differs took %d bytes: %v", all, bytes)
		}
	}
}

// TestNewcomer: who holds nothing gets everything in little more than its size.
func TestNewcomer(t *testing.T) {
	held := large(t, 10, 100)
	a, b := acquainted(t, nil, held)
	state := 0
	for _, e := range held {
		state += e.Size()
	}
	bytes, all := exchanged(t, a, b, a.Dropped(b.self))
	if a.root() != b.root() || len(a.entries) != len(held) {
		t.Errorf("%d of %d records", len(a.entries), len(held))
	}
	t.Logf("%d bytes for %d: %v", all, state, bytes)
	if all > state*3/5 {
		t.Errorf("%d bytes for %d", all, state)
	}
}

// TestHeal: after a cut, two halves exchange little more than what differs.
func TestHeal(t *testing.T) {
	held := large(t, 10, 100)
	mine, theirs, differ := slices.Clone(held), slices.Clone(held), 0
	for i := range 100 {
		rec := held[10*i].Record
		rec.Stamp.Version++
		rec.Content = pods(rec.Origin, 2, 9000+i)
		e := mustEntry(t, rec)
		e = e.Sealed(sealOf(e))
		differ += e.Size()
		half := [][]Entry{mine, theirs}[i%2]
		half[10*i] = e
	}
	a, b := acquainted(t, mine, theirs)
	bytes, all := exchanged(t, a, b, a.Dropped(b.self))
	t.Logf("%d bytes for %d that differ: %v", all, differ, bytes)
	if a.root() != b.root() || all > differ*3/2 {
		t.Errorf("%d bytes for %d that differ", all, differ)
	}
}
