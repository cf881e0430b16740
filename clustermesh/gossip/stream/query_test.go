package stream

import (
	"context"
	"errors"
	"io"
	"net"
	"net/netip"
	"slices"
	"testing"
	"time"

	"strait.io/strait/clustermesh"
	"strait.io/strait/internal/l4"
)

// Trusts implements Answerer: an end trusts all but one.
func (e *end) Trusts(p Peer) (err error) {
	e.do(func() {
		if p.Origin == e.distrusts {
			err = errors.New("not trusted")
		}
	})
	return err
}

func (e *end) distrust(o clustermesh.Origin) { e.do(func() { e.distrusts = o }) }

// Answer implements Answerer: it repeats a line of five bytes behind the name of the end, unless answers has
// something else.
func (e *end) Answer(conn net.Conn) {
	var other func(net.Conn)
	if e.do(func() { other = e.answers }); other != nil {
		other(conn)
		return
	}
	line := make([]byte, 5)
	if _, err := io.ReadFull(conn, line); err == nil {
		_, _ = conn.Write(slices.Concat([]byte(e.self.Node+" "), line))
	}
	conn.Close()
}

// query sends a line to a node and returns all that comes back.
func (e *end) query(t *testing.T, to clustermesh.Origin) (string, error) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	conn, err := e.Query(ctx, to)
	if err != nil {
		return "", err
	}
	defer conn.Close()
	if _, err := conn.Write([]byte("hello")); err != nil {
		return "", err
	}
	answer, err := io.ReadAll(conn)
	return string(answer), err
}

// TestQuery: a query reaches its node and no other, if both ends trust each other.
func TestQuery(t *testing.T) {
	all := ends(t, "a", "b", "older", "stranger")
	a, b, older, stranger := all["a"], all["b"], all["older"], all["stranger"]
	if answer, err := a.query(t, b.self); answer != "b hello" || err != nil {
		t.Errorf("answer %q, %v", answer, err)
	}
	if answer, err := a.query(t, older.self); answer != "" || !errors.Is(err, ErrNoAnswerer) {
		t.Errorf("a daemon that answers none: %q, %v", answer, err)
	}
	if answer, err := stranger.query(t, a.self); answer != "" || !errors.Is(err, ErrWrongKey) {
		t.Errorf("a stranger: %q, %v", answer, err)
	}
	addrs := a.addrs
	a.addrs = func(clustermesh.Origin) netip.AddrPort { return b.addr }
	if answer, err := a.query(t, named("c")); answer != "" || err == nil {
		t.Errorf("another node answers: %q, %v", answer, err)
	}
	a.addrs = addrs
	b.distrust(a.self)
	if answer, err := a.query(t, b.self); answer != "" {
		t.Errorf("b does not trust a, and answers %q, %v", answer, err)
	}
	b.distrust(clustermesh.Origin{})
	a.distrust(b.self)
	if answer, err := a.query(t, b.self); answer != "" || err == nil {
		t.Errorf("a does not trust b, and takes %q, %v", answer, err)
	}
}

// TestQueriesAreBounded: peers that open queries and send nothing take no more than the room of their source.
// Then others are answered, and so is the source once a place is free.
func TestQueriesAreBounded(t *testing.T) {
	all := ends(t, "a", "b", "stranger")
	a, b := all["a"], all["b"]
	var silent []net.Conn
	for range maxQueriesPerSource {
		conn, err := a.Query(t.Context(), b.self)
		if err != nil {
			t.Fatal(err)
		}
		defer conn.Close()
		silent = append(silent, conn)
	}
	source := l4.Source(b.addr.Addr())
	full := func() bool { return b.queriesOf(source) == maxQueriesPerSource }
	eventually(t, "all places of the source are taken", full)
	if answer, _ := a.query(t, b.self); answer != "" {
		t.Errorf("one more is answered: %q", answer)
	}
	if !full() {
		t.Errorf("%d of the source", b.queriesOf(source))
	}
	silent[0].Close()
	eventually(t, "a place is free, and used", func() bool {
		answer, err := a.query(t, b.self)
		return answer == "b hello" && err == nil
	})
}

func (s *Streams) queriesOf(source netip.Prefix) int {
	s.queries.mu.Lock()
	defer s.queries.mu.Unlock()
	return s.queries.of[source]
}

// TestSlowReader: a peer that does not read its answer loses the connection in time, and its place.
func TestSlowReader(t *testing.T) {
	t.Parallel()
	all := ends(t, "a", "b", "stranger")
	a, b := all["a"], all["b"]
	wrote := make(chan error, 1)
	b.do(func() { b.answers = endless(wrote) })
	conn, err := a.Query(t.Context(), b.self)
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	began := time.Now()
	select {
	case err := <-wrote:
		if took := time.Since(began); err == nil || took < queryTimeout-time.Second {
			t.Errorf("the answer ended after %s: %v", took, err)
		}
	case <-time.After(queryTimeout + patience):
		t.Fatal("a peer that reads nothing keeps its place")
	}
	eventually(t, "its place is free", func() bool { return b.queriesOf(l4.Source(b.addr.Addr())) == 0 })
}

// endless returns an answer that never ends, and sets no deadline.
func endless(wrote chan<- error) func(net.Conn) {
	return func(conn net.Conn) {
		for {
			if _, err := conn.Write(make([]byte, 1<<20)); err != nil {
				wrote <- err
				return
			}
		}
	}
}

// TestQueriesInAll: many sources together have no more room than there is, and one that leaves makes room.
func TestQueriesInAll(t *testing.T) {
	var q queries
	source := func(i int) netip.Prefix {
		return l4.Source(netip.AddrFrom4([4]byte{10, 0, byte(i >> 8), byte(i)}))
	}
	for i := range maxQueries {
		if !q.enter(source(i)) {
			t.Fatalf("no room for number %d", i)
		}
	}
	if q.enter(source(maxQueries)) {
		t.Error("there is room without end")
	}
	q.leave(source(3))
	if !q.enter(source(maxQueries)) || len(q.of) != maxQueries {
		t.Errorf("no room for one that came after another left; %d sources", len(q.of))
	}
}
