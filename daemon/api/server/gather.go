package server

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"io"
	"net/http"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"strait.io/strait/daemon/api"
	"strait.io/strait/internal/problem"
)

// Bounds on a query to every node: how many nodes are asked at once, how long each may take, and how long all of
// them in a cluster of up to a hundred nodes. Each node beyond those gets a little more.
const (
	gatherAtOnce  = 64
	gatherOne     = time.Second
	gatherAll     = 1800 * time.Millisecond
	gatherPerNode = 5 * time.Millisecond
	// maxGathered bounds the answers in memory, in bytes.
	maxGathered = 64 << 20
)

func gatherTimeout(nodes int) time.Duration {
	return gatherAll + time.Duration(max(0, nodes-100))*gatherPerNode
}

var errTooLarge = problem.Refuse("ask this node alone: --node NODE", "the answers of all nodes together are larger than %d MiB", maxGathered>>20)

// gather asks every node. Those that gossip hears come first, so that the others do not keep them waiting.
func (s *Server) gather(r *http.Request, own http.Handler, peers []Peer) []api.NodeAnswer {
	ctx, cancel := context.WithTimeout(r.Context(), gatherTimeout(len(peers)))
	defer cancel()
	order := slices.Clone(peers)
	slices.SortStableFunc(order, func(a, b Peer) int { return cmp.Compare(rank(a), rank(b)) })
	items, came := make([]api.NodeAnswer, len(order)), make([]time.Time, len(order))
	var left atomic.Int64
	left.Store(maxGathered)
	var next atomic.Int64
	var wg sync.WaitGroup
	for range min(gatherAtOnce, len(order)) {
		wg.Go(func() {
			for i := int(next.Add(1)) - 1; i < len(order); i = int(next.Add(1)) - 1 {
				items[i] = s.askOne(ctx, r, own, order[i], &left)
				came[i] = time.Now()
			}
		})
	}
	wg.Wait()
	now := time.Now()
	for i := range items {
		if items[i].Answer != nil {
			items[i].Age = now.Sub(came[i]).Seconds()
		}
	}
	return items
}

func rank(p Peer) int {
	switch p.Contact {
	case api.Self, api.Alive:
		return 0
	}
	return 1
}

// askOne returns what one node answers, if that fits into what is left.
func (s *Server) askOne(ctx context.Context, r *http.Request, own http.Handler, p Peer, left *atomic.Int64) api.NodeAnswer {
	ctx, cancel := context.WithTimeout(ctx, gatherOne)
	defer cancel()
	r = r.Clone(ctx)
	r.Method = http.MethodGet
	status, body, err := s.bodyOf(ctx, r, own, p, left)
	item := api.NodeAnswer{Node: p.Name, Status: status, Contact: p.Contact, Heard: p.Heard}
	if err == nil && !json.Valid(body) {
		err = errors.New("the answer is no JSON")
	}
	if err != nil {
		e := unanswered(p, err, time.Now())
		item.Status, item.Error = http.StatusBadGateway, &e
		return item
	}
	if status == http.StatusOK {
		item.Answer = body
		return item
	}
	item.Error = &api.ErrorAnswer{}
	if err := json.Unmarshal(body, item.Error); err != nil {
		*item.Error = api.NewError("the answer has another form: "+err.Error(), "check that all nodes run the same version of strait")
	}
	return item
}

func (s *Server) bodyOf(ctx context.Context, r *http.Request, own http.Handler, p Peer, left *atomic.Int64) (status int, body []byte, err error) {
	if p.self() {
		w := &recorder{header: http.Header{}, status: http.StatusOK}
		own.ServeHTTP(w, r)
		left.Add(-int64(w.body.Len()))
		return w.status, w.body.Bytes(), nil
	}
	response, err := s.askPeer(ctx, r, p)
	if err != nil {
		return 0, nil, err
	}
	defer response.Body.Close()
	body, err = io.ReadAll(bounded{response.Body, left})
	return response.StatusCode, body, err
}

// bounded reads while something is left of what several readers share.
type bounded struct {
	io.Reader
	left *atomic.Int64
}

// Read implements io.Reader.
func (b bounded) Read(p []byte) (int, error) {
	n, err := b.Reader.Read(p)
	if b.left.Add(-int64(n)) < 0 {
		return 0, errTooLarge
	}
	return n, err
}

// recorder is a http.ResponseWriter in memory.
type recorder struct {
	header http.Header
	status int
	body   bytes.Buffer
}

// Header implements http.ResponseWriter.
func (w *recorder) Header() http.Header { return w.header }

// WriteHeader implements http.ResponseWriter.
func (w *recorder) WriteHeader(status int) { w.status = status }

// Write implements http.ResponseWriter.
func (w *recorder) Write(b []byte) (int, error) { return w.body.Write(b) }
