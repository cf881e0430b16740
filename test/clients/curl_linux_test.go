package clients

import (
	"fmt"
	"net"
	"net/http"
	"net/netip"
	"strings"
	"testing"
	"time"

	"strait.io/strait/internal/l4"
)

const megabytes = 32

// serveHTTP answers with the address that was reached and the one that asked; /big is bulk.
func (w *world) serveHTTP(at netip.AddrPort) {
	w.t.Helper()
	var l net.Listener
	must(w.t, w.servers.Do(func() (err error) {
		l, err = net.Listen("tcp", at.String())
		return err
	}))
	mux := http.NewServeMux()
	mux.HandleFunc("/", func(rw http.ResponseWriter, r *http.Request) {
		fmt.Fprintf(rw, "you reached %v\n", r.Context().Value(http.LocalAddrContextKey))
	})
	mux.HandleFunc("/big", func(rw http.ResponseWriter, _ *http.Request) {
		block := make([]byte, 1<<20)
		for range megabytes {
			if _, err := rw.Write(block); err != nil {
				return // shows in the client's count
			}
		}
	})
	s := &http.Server{Handler: mux, Protocols: new(http.Protocols)}
	s.Protocols.SetHTTP1(true)
	s.Protocols.SetUnencryptedHTTP2(true)
	done := make(chan struct{})
	go func() {
		defer close(done)
		_ = s.Serve(l) // ends by Close
	}()
	w.t.Cleanup(func() {
		s.Close()
		<-done
	})
}

// curl's own word for the peer is what getpeername says.
const curlSays = `peer %{remote_ip} port %{remote_port} status %{http_code} bytes %{size_download}\n`

func TestCurl(t *testing.T) {
	curl := need(t, "curl", "curl")
	w := newWorld(t)
	args := func(more ...string) []string {
		return append([]string{"-q", "-sS", "--globoff", "--noproxy", "*", "--max-time", "10", "-w", curlSays}, more...)
	}
	for _, f := range families {
		t.Run(f.name, func(t *testing.T) {
			w := w.in(t)
			backend := netip.AddrPortFrom(f.pod, 8080)
			w.serveHTTP(backend)
			w.balance(frontend(f.front, 80, l4.TCP, 8080, f.pod), frontend(f.front, 81, l4.TCP, 0))
			url := "http://" + netip.AddrPortFrom(f.front, 80).String()
			peer := fmt.Sprintf("peer %s port 80 status 200", f.front)

			w.prints([]string{"you reached " + backend.String(), peer}, curl, args(url+"/")...)
			w.prints([]string{fmt.Sprintf("%s bytes %d", peer, megabytes<<20)}, curl, args("-o", "/dev/null", url+"/big")...)

			// Who asks the pod is told of the pod, a frontend's backend or not.
			w.prints([]string{fmt.Sprintf("peer %s port 8080 status 200", f.pod)}, curl, args("http://"+backend.String()+"/")...)

			// No listener, reported at once: curl waits for no timeout.
			start := time.Now()
			printed, status := w.client(curl, args("http://"+netip.AddrPortFrom(f.front, 81).String()+"/")...)
			if couldNotConnect := 7; status != couldNotConnect || time.Since(start) > 5*time.Second {
				t.Errorf("an empty frontend: exit status %d after %v, printed:\n%s", status, time.Since(start), printed)
			}
		})
	}
}

// TestCurlFlips: a client that comes while backends change is always answered.
func TestCurlFlips(t *testing.T) {
	curl := need(t, "curl", "curl")
	w := newWorld(t)
	w.serveHTTP(netip.AddrPortFrom(pod4, 8080))
	w.serveHTTP(netip.AddrPortFrom(other4, 8080))
	seen := map[string]int{}
	for i := range 20 {
		at := []netip.Addr{pod4, other4}[i%2]
		w.balance(frontend(front4, 80, l4.TCP, 8080, at))
		printed := w.prints([]string{"you reached " + at.String() + ":8080"}, curl, "-q", "-sS", "--noproxy", "*", "http://10.96.0.1/")
		seen[strings.TrimSpace(printed)]++
	}
	if len(seen) != 2 {
		t.Errorf("answers %v: want both backends", seen)
	}
}
