package clients

import (
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"net/netip"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	"strait.io/strait/internal/l4"
	"strait.io/strait/internal/testutil"
)

// iperfResult is what is read of `iperf3 --json`.
type iperfResult struct {
	Error string `json:"error"`
	Start struct {
		Connected []struct {
			RemoteHost string `json:"remote_host"`
			RemotePort int    `json:"remote_port"`
		} `json:"connected"`
		ConnectingTo struct {
			Host string `json:"host"`
		} `json:"connecting_to"`
	} `json:"start"`
	End struct {
		Sum struct {
			Packets int `json:"packets"`
			Lost    int `json:"lost_packets"`
		} `json:"sum"`
		Received struct {
			Bytes float64 `json:"bytes"`
		} `json:"sum_received"`
	} `json:"end"`
}

// serveIperf starts a server and waits until it listens, outside of the balancer.
func (w *world) serveIperf(iperf string, at netip.AddrPort) {
	w.t.Helper()
	w.server(iperf, "--server", "--bind", at.Addr().String(), "--port", "5201")
	testutil.Eventually(w.t, 5*time.Second, func() error {
		return w.servers.Do(func() error {
			// To connect would be a test that the server counts, and to listen would be in its way.
			if !listens(w.t, at) {
				return errors.New("iperf3 does not listen")
			}
			return nil
		})
	})
}

// listens reports whether there is a TCP socket that listens at an address.
func listens(t *testing.T, at netip.AddrPort) bool {
	t.Helper()
	file, addr := "/proc/thread-self/net/tcp", at.Addr().AsSlice()
	if at.Addr().Is6() {
		file += "6"
	}
	text, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	for word := range slices.Chunk(addr, 4) { // the kernel prints words in the machine's order
		binary.NativeEndian.PutUint32(word, binary.BigEndian.Uint32(word))
	}
	local := fmt.Sprintf("%X:%04X", addr, at.Port())
	for line := range strings.Lines(string(text)) {
		if f := strings.Fields(line); len(f) > 3 && f[1] == local && f[3] == "0A" {
			return true
		}
	}
	return false
}

// iperf runs a client and decodes what it printed.
func (w *world) iperf(iperf string, args ...string) iperfResult {
	w.t.Helper()
	printed, status := w.client(iperf, append(args, "--json", "--time", "1", "--connect-timeout", "5000")...)
	var r iperfResult
	if err := json.Unmarshal([]byte(printed), &r); err != nil || status != 0 || r.Error != "" {
		w.t.Fatalf("exit status %d, %v, printed:\n%s", status, err, printed)
	}
	return r
}

func TestIperf(t *testing.T) {
	iperf := need(t, "iperf3", "iperf3")
	w := newWorld(t)
	for _, f := range families {
		t.Run(f.name, func(t *testing.T) {
			w := w.in(t)
			w.serveIperf(iperf, netip.AddrPortFrom(f.pod, 5201))
			// Its control connection is TCP, also when it measures UDP.
			w.balance(frontend(f.front, 80, l4.TCP, 5201, f.pod), frontend(f.front, 80, l4.UDP, 5201, f.pod))
			to := []string{"--client", f.front.String(), "--port", "80"}

			tcp := w.iperf(iperf, append(to, "--parallel", "3")...)
			w.dialled(f.front, tcp, 3)
			if tcp.End.Received.Bytes < 1<<20 {
				t.Errorf("TCP: the server got %v bytes", tcp.End.Received.Bytes)
			}
			udp := w.iperf(iperf, append(to, "--udp", "--bitrate", "10M", "--length", "1000")...)
			w.dialled(f.front, udp, 1)
			// 1,250 a second. On a busy machine some are lost, never most.
			if sum := udp.End.Sum; sum.Packets < 600 || sum.Lost*2 > sum.Packets {
				t.Errorf("UDP: %d datagrams, %d of them lost", sum.Packets, sum.Lost)
			}
		})
	}
}

// TestIperfAffinity: a client that opens several connections, which only one server can put together, works
// with several servers where the frontend has session affinity.
func TestIperfAffinity(t *testing.T) {
	iperf := need(t, "iperf3", "iperf3")
	w := newWorld(t)
	w.serveIperf(iperf, netip.AddrPortFrom(pod4, 5201))
	w.serveIperf(iperf, netip.AddrPortFrom(other4, 5201))
	f := frontend(front4, 80, l4.TCP, 5201, pod4, other4)
	f.AffinitySeconds = 60
	w.balance(f)
	r := w.iperf(iperf, "--client", front4.String(), "--port", "80", "--parallel", "8")
	w.dialled(front4, r, 8)
}

// dialled wants each stream's peer to be the frontend, as getpeername told iperf3.
func (w *world) dialled(front netip.Addr, r iperfResult, streams int) {
	w.t.Helper()
	if len(r.Start.Connected) != streams {
		w.t.Errorf("%d streams, want %d", len(r.Start.Connected), streams)
	}
	for _, c := range r.Start.Connected {
		if c.RemoteHost != front.String() || c.RemotePort != 80 {
			w.t.Errorf("a stream's peer is %s port %d, want %s port 80", c.RemoteHost, c.RemotePort, front)
		}
	}
}
