// Package relay passes on the answers of this node's daemon over HTTPS, to clients that have a token. It is
// what a pod of strait-view runs, which the API server's services/proxy reaches.
//
// Inputs are the daemon's socket and a file with the token; outputs are the daemon's answers, unchanged. It
// must not know what answers contain, nor an API server: who may ask is who may get the token's Secret.
package relay

import (
	"context"
	"crypto/sha256"
	"crypto/subtle"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"os"
	"path"
	"strconv"
	"strings"
	"time"

	"strait.io/strait/daemon/api"
)

const (
	// minToken is the length of the shortest token that is accepted.
	minToken = 32
	// maxConns bounds the connections at once, and maxAnswering the queries: every pod can reach the port.
	maxConns     = 256
	maxAnswering = 16
	// answerTimeout bounds a query. A query to every node of a large cluster takes seconds.
	answerTimeout = 20 * time.Second
)

// Config is what to relay.
type Config struct {
	// Listen is the TCP address.
	Listen string
	// Socket is that of the daemon.
	Socket string
	// Token is the file with the token. It is read for each query, because it can change, or come later.
	Token string
	Log   *slog.Logger
}

// Run serves until ctx ends.
func Run(ctx context.Context, c Config) error {
	cert, err := certificate(time.Now())
	if err != nil {
		return err
	}
	l, err := new(net.ListenConfig).Listen(ctx, "tcp", c.Listen)
	if err != nil {
		return fmt.Errorf("listen on %s: %w", c.Listen, err)
	}
	return c.serve(ctx, l, cert)
}

func (c Config) serve(ctx context.Context, l net.Listener, cert tls.Certificate) error {
	server := &http.Server{
		Handler:           c.handler(),
		ReadHeaderTimeout: 5 * time.Second,
		ReadTimeout:       10 * time.Second,
		WriteTimeout:      answerTimeout + 5*time.Second,
		IdleTimeout:       30 * time.Second,
		MaxHeaderBytes:    16 << 10,
		ErrorLog:          slog.NewLogLogger(c.Log.Handler(), slog.LevelDebug),
	}
	stop := context.AfterFunc(ctx, func() { _ = server.Close() })
	defer stop()
	c.Log.Info("relaying the daemon's answers", "listen", l.Addr().String(), "socket", c.Socket)
	err := server.Serve(tls.NewListener(newBounded(l), &tls.Config{Certificates: []tls.Certificate{cert}, MinVersion: tls.VersionTLS13}))
	if errors.Is(err, http.ErrServerClosed) {
		return nil
	}
	return fmt.Errorf("serve on %s: %w", l.Addr(), err)
}

// handler answers /healthz to everyone, and /v1/… to those that have the token.
func (c Config) handler() http.Handler {
	dial := func(ctx context.Context, _, _ string) (net.Conn, error) {
		return new(net.Dialer).DialContext(ctx, "unix", c.Socket)
	}
	daemon := &http.Transport{DialContext: dial, DisableKeepAlives: true, DisableCompression: true, MaxResponseHeaderBytes: 16 << 10}
	places := make(chan struct{}, maxAnswering)
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path == "/healthz" {
			fmt.Fprintln(w, "ok")
			return
		}
		if status, message, try := c.refuses(r); status != 0 {
			writeError(w, status, message, try)
			return
		}
		select {
		case places <- struct{}{}:
			defer func() { <-places }()
		default:
			writeError(w, http.StatusTooManyRequests, "too many queries at once", "ask again")
			return
		}
		if err := pass(w, r, daemon); err != nil {
			c.Log.Warn("the daemon does not answer", "socket", c.Socket, "err", err)
			writeError(w, http.StatusBadGateway, "straitd on the node of this pod of strait-view does not answer: "+err.Error(),
				"see whether the daemon of that node runs: kubectl -n strait-system get pods -o wide")
		}
	})
}

// refuses returns the HTTP status with which a query is refused, and why; 0 if it may be asked. A client without
// the token learns nothing else.
func (c Config) refuses(r *http.Request) (status int, message, try string) {
	token, err := os.ReadFile(c.Token)
	want := strings.TrimSpace(string(token))
	given := r.Header.Values(api.ViewTokenHeader)
	switch {
	case err != nil || len(want) < minToken:
		return http.StatusUnauthorized, "strait-view has no token yet", "make the Secret strait-view, as strait install does"
	case len(given) != 1 || !same(given[0], want):
		return http.StatusUnauthorized, "the header " + api.ViewTokenHeader + " does not have the token of strait-view", "send the token of the Secret strait-view"
	case r.Method != http.MethodGet && r.Method != http.MethodHead:
		return http.StatusMethodNotAllowed, "this API is read-only: method " + r.Method + " is not supported", "use GET"
	case !strings.HasPrefix(r.URL.Path, "/v1/") || path.Clean(r.URL.Path) != r.URL.Path:
		return http.StatusNotFound, "only /v1/… can be asked here", "ask /v1/status"
	}
	return 0, "", ""
}

// same compares texts in a time that depends on neither.
func same(a, b string) bool {
	x, y := sha256.Sum256([]byte(a)), sha256.Sum256([]byte(b))
	return subtle.ConstantTimeCompare(x[:], y[:]) == 1
}

// pass writes what the daemon answers to the path and the query, and passes nothing else on to it. The error is
// nil once something was written.
func pass(w http.ResponseWriter, r *http.Request, daemon http.RoundTripper) error {
	ctx, cancel := context.WithTimeout(r.Context(), answerTimeout)
	defer cancel()
	u := *r.URL
	u.Scheme, u.Host, u.User, u.Fragment = "http", "strait", nil, ""
	request, err := http.NewRequestWithContext(ctx, r.Method, u.String(), nil)
	if err != nil {
		return err
	}
	response, err := daemon.RoundTrip(request)
	if err != nil {
		return err
	}
	defer response.Body.Close()
	w.Header().Set("Content-Type", "application/json")
	w.Header().Set("Cache-Control", "no-store")
	w.Header().Set("X-Content-Type-Options", "nosniff")
	if response.ContentLength >= 0 {
		w.Header().Set("Content-Length", strconv.FormatInt(response.ContentLength, 10))
	}
	w.WriteHeader(response.StatusCode)
	if _, err := io.Copy(w, response.Body); err != nil {
		panic(http.ErrAbortHandler) // the client must not take a part for the whole
	}
	return nil
}
