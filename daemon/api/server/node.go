package server

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"time"

	"strait.io/strait/daemon/api"
	"strait.io/strait/internal/problem"
)

// forwardTimeout is how long another node's daemon may take to answer. The CLI waits 5 s in all.
const forwardTimeout = 3 * time.Second

// Peers are the nodes of this daemon's cluster.
type Peers interface {
	// Viewpoint is this node's.
	Viewpoint() api.Viewpoint
	// All returns every node of the cluster, this one too; nil before the first plan.
	All() []Peer
	// Dial opens a connection to a node's daemon, which answers there what this one answers. If the error is
	// a *problem.Refusal, it has what to do.
	Dial(ctx context.Context, node string) (net.Conn, error)
}

// Peer is a node of the cluster. Contact and Heard are as in api.Node.
type Peer struct {
	Name    string
	Contact string
	Heard   time.Time
}

func (p Peer) self() bool { return p.Contact == api.Self }

// withNodes has the daemons of other nodes answer the queries that name them with node=NODE, and own all others.
func (s *Server) withNodes(own http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		name := r.URL.Query().Get("node")
		reads := r.Method == http.MethodGet || r.Method == http.MethodHead
		if name == "" || s.cfg.Peers == nil || !reads || !strings.HasPrefix(r.URL.Path, "/v1/") {
			own.ServeHTTP(w, r)
			return
		}
		peers := s.cfg.Peers.All()
		if peers == nil {
			writeStarting(w)
			return
		}
		if name == api.EveryNode {
			items := s.gather(r, own, peers)
			writeJSON(w, http.StatusOK, api.NewNodeAnswerList(s.cfg.Peers.Viewpoint(), items))
			return
		}
		switch p, status, err := s.find(peers, name); {
		case err != nil:
			writeRefusalAs(w, status, err)
		case p.self():
			own.ServeHTTP(w, r)
		default:
			s.forward(w, r, p)
		}
	})
}

// find returns the node that a query names, as NODE or CLUSTER/NODE.
func (s *Server) find(peers []Peer, name string) (p Peer, status int, err error) {
	from := s.cfg.Peers.Viewpoint()
	cluster, node, both := strings.Cut(name, "/")
	if !both {
		cluster, node = from.Cluster, name
	}
	if node == "" || strings.Contains(node, "/") {
		return p, http.StatusBadRequest, problem.Refuse("write NODE, CLUSTER/NODE, or * for all nodes of the cluster", "%q names no node", name)
	}
	if cluster != from.Cluster {
		return p, http.StatusBadRequest, problem.Refuse("ask that cluster: name its context with --context",
			"%s is a node of cluster %s, and this daemon asks only nodes of its own cluster %s", name, cluster, from.Cluster)
	}
	i := slices.IndexFunc(peers, func(p Peer) bool { return p.Name == node })
	if i < 0 {
		return p, http.StatusNotFound, problem.Refuse("list the nodes: strait nodes", "cluster %s has no node %s, as seen from node %s", cluster, node, from.Node)
	}
	return peers[i], 0, nil
}

// forward passes on what another node's daemon answers.
func (s *Server) forward(w http.ResponseWriter, r *http.Request, p Peer) {
	ctx, cancel := context.WithTimeout(r.Context(), forwardTimeout)
	defer cancel()
	response, err := s.askPeer(ctx, r, p)
	if err != nil {
		a := unanswered(p, err, time.Now())
		writeError(w, http.StatusBadGateway, a.Message, a.Try)
		return
	}
	defer response.Body.Close()
	w.Header().Set("Content-Type", "application/json")
	if response.ContentLength >= 0 {
		w.Header().Set("Content-Length", strconv.FormatInt(response.ContentLength, 10))
	}
	w.WriteHeader(response.StatusCode)
	if _, err := io.Copy(w, response.Body); err != nil {
		panic(http.ErrAbortHandler) // the client must not take a part for the whole
	}
}

// askPeer sends a query to another node's daemon. The caller must close the answer's body.
func (s *Server) askPeer(ctx context.Context, r *http.Request, p Peer) (*http.Response, error) {
	q := r.URL.Query()
	q.Del("node")
	u := url.URL{Scheme: "http", Host: p.Name, Path: r.URL.Path, RawQuery: q.Encode()}
	request, err := http.NewRequestWithContext(ctx, r.Method, u.String(), nil)
	if err != nil {
		return nil, fmt.Errorf("make the query: %w", err)
	}
	response, err := s.peers.RoundTrip(request)
	if err != nil && ctx.Err() == nil && !errors.As(err, new(*notReached)) {
		err = &hungUp{err} // HTTP has several errors for that
	}
	return response, err
}

// newTransport makes what asks the daemons of nodes: a connection for each query, to the node that is its host.
func newTransport(p Peers) *http.Transport {
	return &http.Transport{
		DialContext: func(ctx context.Context, _, addr string) (net.Conn, error) {
			node, _, err := net.SplitHostPort(addr)
			if err != nil {
				return nil, err
			}
			c, err := p.Dial(ctx, node)
			if err != nil {
				return nil, &notReached{err}
			}
			return c, nil
		},
		DisableKeepAlives: true, DisableCompression: true, MaxResponseHeaderBytes: 16 << 10,
	}
}

// notReached is why there is no connection to a node's daemon, and hungUp that the daemon closed it before
// it answered.
type (
	notReached struct{ error }
	hungUp     struct{ error }
)

// Unwrap returns the cause.
func (e *notReached) Unwrap() error { return e.error }

// Unwrap returns the cause.
func (e *hungUp) Unwrap() error { return e.error }

// unanswered explains why a node's daemon did not answer: by what is known of the node, and the error.
func unanswered(p Peer, err error, now time.Time) api.ErrorAnswer {
	var r *problem.Refusal
	if errors.As(err, &r) {
		return api.NewError(fmt.Sprintf("node %s: %s", p.Name, r.Message), r.Try)
	}
	since := "not heard since this daemon started"
	if !p.Heard.IsZero() {
		since = fmt.Sprintf("last heard %s, %s ago", p.Heard.UTC().Format(time.RFC3339), now.Sub(p.Heard).Round(time.Second))
	}
	what, try := "straitd does not answer: "+err.Error(), "ask again, and see its log for what keeps it busy"
	switch {
	case p.Contact == "quiet":
		what, try = "straitd does not run, but the machine answers", "start straitd there; its log says why it ended"
	case p.Contact != api.Alive:
		what, try = "neither straitd nor the machine answers", "see whether the machine runs, and whether its network reaches this node"
	case errors.Is(err, context.DeadlineExceeded):
		what = "straitd does not answer in time"
	case errors.As(err, new(*hungUp)):
		what, try = "straitd refuses the query", "ask again: it answers a few queries at a time, and only nodes that have proven to be of its cluster"
	}
	return api.NewError(fmt.Sprintf("node %s: %s (contact: %s, %s)", p.Name, what, p.Contact, since), try)
}
