package agent

import (
	"context"
	"net"
	"testing"
	"time"

	"strait.io/strait/cli/connectivity"
)

// serve starts a server on a free port of this machine.
func serve(t *testing.T, as connectivity.Identity) uint16 {
	t.Helper()
	tcp, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	udp, err := net.ListenPacket("udp", tcp.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan error)
	go func() { ended <- serveOn(ctx, tcp, udp, as) }()
	t.Cleanup(func() {
		cancel()
		if err := <-ended; err != nil {
			t.Error(err)
		}
	})
	return uint16(tcp.Addr().(*net.TCPAddr).Port)
}

// TestCalls: what answers tells who it is and whom it sees, in any size that a case has; what does not
// answer is told by its stage.
func TestCalls(t *testing.T) {
	as := connectivity.Identity{Cluster: "c1", Node: "n1", Pod: "pod-1"}
	port := serve(t, as)
	closed, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	unused := uint16(closed.Addr().(*net.TCPAddr).Port)
	_ = closed.Close()
	for _, c := range []struct {
		name string
		call connectivity.Call
		want connectivity.Stage
	}{
		{"small TCP", connectivity.Call{Network: "tcp4", Host: "127.0.0.1", Port: port, Size: 512}, connectivity.Done},
		{"large TCP", connectivity.Call{Network: "tcp4", Host: "127.0.0.1", Port: port, Size: 1 << 20}, connectivity.Done},
		{"small UDP", connectivity.Call{Network: "udp4", Host: "127.0.0.1", Port: port, Size: 1}, connectivity.Done},
		{"large UDP", connectivity.Call{Network: "udp4", Host: "127.0.0.1", Port: port, Size: 8000}, connectivity.Done},
		{"refused TCP", connectivity.Call{Network: "tcp4", Host: "127.0.0.1", Port: unused}, connectivity.Connect},
		{"refused UDP", connectivity.Call{Network: "udp4", Host: "127.0.0.1", Port: unused}, connectivity.Receive},
		{"no such name", connectivity.Call{Network: "tcp4", Host: "none.invalid.", Port: port}, connectivity.Resolve},
	} {
		t.Run(c.name, func(t *testing.T) {
			c.call.ID = 7
			out := Run(t.Context(), []connectivity.Call{c.call})[0]
			if out.Stage != c.want || out.ID != 7 {
				t.Fatalf("%+v, want stage %s", out, c.want)
			}
			if c.want != connectivity.Done {
				if out.Error == "" || out.Tries < 2 {
					t.Errorf("%+v: want an error, after two tries", out)
				}
				return
			}
			if out.Server != as || out.Seen.String() != "127.0.0.1" || out.Error != "" {
				t.Errorf("%+v, want an answer of %v to 127.0.0.1", out, as)
			}
		})
	}
}

// TestResend: a datagram is sent again to the same server, since the first ones teach the kernels the MTU.
func TestResend(t *testing.T) {
	conn, err := net.ListenPacket("udp4", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	as := connectivity.Identity{Cluster: "c1", Node: "n1", Pod: "pod-1"}
	go func() {
		buffer := make([]byte, 64<<10)
		for i := 0; ; i++ {
			n, from, err := conn.ReadFrom(buffer)
			if err != nil {
				return
			}
			if i >= 2 && fill(buffer[:n], greeting{Server: as}) {
				_, _ = conn.WriteTo(buffer[:n], from)
			}
		}
	}()
	call := connectivity.Call{Network: "udp4", Host: "127.0.0.1", Port: uint16(conn.LocalAddr().(*net.UDPAddr).Port), Size: 1400}
	if out := Run(t.Context(), []connectivity.Call{call})[0]; out.Stage != connectivity.Done || out.Server != as || out.Tries != 1 {
		t.Errorf("%+v, want an answer at the first try", out)
	}
}

// TestNoLoop: an answer is not answered, nor is what is too small, so that no two servers can keep each
// other busy, and no address gets more than was sent in its name.
func TestNoLoop(t *testing.T) {
	port := serve(t, connectivity.Identity{Cluster: "c1", Node: "n1", Pod: "pod-1"})
	conn, err := net.DialUDP("udp4", nil, &net.UDPAddr{IP: net.IPv4(127, 0, 0, 1), Port: int(port)})
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	answer, small, fine := make([]byte, least), make([]byte, least-1), make([]byte, least)
	answer[0], small[0], fine[0], fine[1] = reply, question, question, 42
	for _, d := range [][]byte{answer, small, fine} {
		if _, err := conn.Write(d); err != nil {
			t.Fatal(err)
		}
	}
	_ = conn.SetReadDeadline(time.Now().Add(10 * time.Second))
	got := make([]byte, 2*least)
	n, err := conn.Read(got)
	if err != nil || n != least || got[1] != 42 {
		t.Fatalf("the first answer has %d bytes, number %d, %v: want the one to the last datagram", n, got[1], err)
	}
}

func FuzzGreeting(f *testing.F) {
	asked := make([]byte, least)
	asked[0] = question
	good := append([]byte(nil), asked...)
	fill(good, greeting{Server: connectivity.Identity{Cluster: "c1", Node: "n", Pod: "p"}})
	f.Add(good)
	f.Add([]byte{})
	f.Fuzz(func(t *testing.T, datagram []byte) {
		if _, ok := greetingOf(datagram, asked); ok && datagram[0] != reply {
			t.Errorf("%q is no answer", datagram)
		}
	})
}
