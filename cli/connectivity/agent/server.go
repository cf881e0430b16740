// Package agent is what runs in the pods of strait connectivity test: a server that answers with as many
// bytes as it gets, over TCP and UDP, and a client that makes calls.
//
// Inputs are calls, or requests from the network; outputs are outcomes, or answers that tell which pod
// answers. It must not know Kubernetes, the daemon, nor what a call is meant to show.
package agent

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/netip"
	"strconv"
	"time"

	"strait.io/strait/cli/connectivity"
)

// answerHeader of an HTTP answer has the greeting as JSON.
const answerHeader = "Strait-Probe"

// greeting is how a server introduces itself.
type greeting struct {
	Server connectivity.Identity `json:"server"`
	// Seen is the address that the server has as the client's.
	Seen netip.Addr `json:"seen"`
}

// maxBody bounds what the server reads of one request, and sends back.
const maxBody = 4 << 20

// Serve answers on a TCP and a UDP port until ctx ends. Both have the same number, which is that of the
// address.
func Serve(ctx context.Context, address string, as connectivity.Identity) error {
	var listen net.ListenConfig
	tcp, err := listen.Listen(ctx, "tcp", address)
	if err != nil {
		return fmt.Errorf("listen on %s/TCP: %w", address, err)
	}
	udp, err := listen.ListenPacket(ctx, "udp", tcp.Addr().String())
	if err != nil {
		_ = tcp.Close()
		return fmt.Errorf("listen on %s/UDP: %w", address, err)
	}
	return serveOn(ctx, tcp, udp, as)
}

func serveOn(ctx context.Context, tcp net.Listener, udp net.PacketConn, as connectivity.Identity) error {
	s := &http.Server{Handler: handler(as), ReadHeaderTimeout: 10 * time.Second}
	stop := context.AfterFunc(ctx, func() { _, _ = s.Close(), udp.Close() })
	defer stop()
	ended := make(chan error, 1)
	go func() { ended <- answerDatagrams(udp, as) }()
	err := s.Serve(tcp)
	_ = udp.Close()
	if second := <-ended; ctx.Err() == nil {
		return errors.Join(err, second)
	}
	return nil
}

// handler answers a POST with the request's own body, and GET /stream with zeros for some seconds.
func handler(as connectivity.Identity) http.Handler {
	mux := http.NewServeMux()
	introduce := func(w http.ResponseWriter, r *http.Request) {
		from, _ := netip.ParseAddrPort(r.RemoteAddr)
		text, _ := json.Marshal(greeting{as, from.Addr().Unmap()})
		w.Header().Set(answerHeader, string(text))
	}
	mux.HandleFunc("GET /{$}", func(w http.ResponseWriter, r *http.Request) { introduce(w, r) })
	mux.HandleFunc("POST /{$}", func(w http.ResponseWriter, r *http.Request) {
		introduce(w, r)
		body, err := io.ReadAll(http.MaxBytesReader(w, r.Body, maxBody))
		if err != nil {
			http.Error(w, err.Error(), http.StatusBadRequest)
			return
		}
		_, _ = w.Write(body)
	})
	mux.HandleFunc("GET /stream", func(w http.ResponseWriter, r *http.Request) {
		introduce(w, r)
		seconds, err := strconv.Atoi(r.URL.Query().Get("seconds"))
		if err != nil || seconds < 1 || seconds > 60 {
			http.Error(w, "seconds: want 1 to 60", http.StatusBadRequest)
			return
		}
		zeros := make([]byte, 64<<10)
		for end := time.Now().Add(time.Duration(seconds) * time.Second); time.Now().Before(end); {
			if _, err := w.Write(zeros); err != nil {
				return
			}
		}
	})
	return mux
}

// question begins every datagram that is answered, and reply every answer. They differ, so that two
// servers never answer each other.
const (
	question = '?'
	reply    = '!'
	// least is the size of the smallest datagram that is answered: an answer is never larger than what
	// it answers.
	least = 400
)

// answerDatagrams answers until the socket is closed.
func answerDatagrams(conn net.PacketConn, as connectivity.Identity) error {
	buffer := make([]byte, 64<<10)
	for {
		n, from, err := conn.ReadFrom(buffer)
		if errors.Is(err, net.ErrClosed) {
			return nil
		}
		if err != nil {
			continue // about one peer, such as ICMP's port unreachable
		}
		peer, ok := from.(*net.UDPAddr)
		if !ok || n < least || buffer[0] != question {
			continue
		}
		if fill(buffer[:n], greeting{as, peer.AddrPort().Addr().Unmap()}) {
			_, _ = conn.WriteTo(buffer[:n], from)
		}
	}
}

// nonceSize is that of the number after the first byte, which the answer repeats.
const nonceSize = 8

// fill turns a question into its answer, which has the same size. It reports false if the greeting does not
// fit.
func fill(datagram []byte, g greeting) bool {
	text, err := json.Marshal(g)
	if err != nil || 1+nonceSize+len(text)+1 > len(datagram) {
		return false
	}
	datagram[0] = reply
	rest := datagram[1+nonceSize:]
	clear(rest[copy(rest, text):])
	return true
}

// greetingOf reads an answer to a question.
func greetingOf(datagram, question []byte) (g greeting, ok bool) {
	if len(datagram) != len(question) || len(datagram) < least || datagram[0] != reply ||
		string(datagram[1:1+nonceSize]) != string(question[1:1+nonceSize]) {
		return g, false
	}
	text := datagram[1+nonceSize:]
	for i, b := range text {
		if b == 0 {
			text = text[:i]
			break
		}
	}
	return g, json.Unmarshal(text, &g) == nil
}
