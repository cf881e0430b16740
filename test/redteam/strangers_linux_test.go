package redteam

import (
	"encoding/binary"
	"fmt"
	"io"
	"math/rand/v2"
	"net"
	"net/netip"
	"os"
	"os/exec"
	"slices"
	"strings"
	"sync"
	"syscall"
	"time"

	"strait.io/strait/internal/testutil"
)

// outsiderEnv makes this program an attacker without any key: "KIND ADDRESS".
const outsiderEnv = "STRAIT_REDTEAM_OUTSIDER"

// beOutsider attacks if the environment asks for it. Otherwise it returns false at once.
func beOutsider() bool {
	spec := strings.Fields(os.Getenv(outsiderEnv))
	if len(spec) != 2 {
		return false
	}
	if spec[0] != "call" {
		if err := testutil.Yield(); err != nil {
			panic(err)
		}
	}
	go attacks[spec[0]](netip.MustParseAddrPort(spec[1]))
	_, _ = io.Copy(io.Discard, os.Stdin) // until the test ends, or is killed
	return true
}

// attacks go on until the process ends.
var attacks = map[string]func(to netip.AddrPort){
	"silent": silent, "flood": flood, "garbage": garbage, "replay": replay,
	"publish": publish,
	"call":    call, // no attack: a client
	"burn":    burn, // nor is this
}

// outsider is a running attack.
type outsider struct {
	w   *world
	out *lines
	// stop ends it. The test does so too.
	stop func()
}

// outsider starts an attack on a daemon.
func (m *member) outsider(kind string) *outsider {
	m.w.Helper()
	return m.w.outsider(kind, gossipOf(m.number), "")
}

// outsider starts an attack on an address, in a cgroup if that is not empty.
func (w *world) outsider(kind string, to netip.AddrPort, cgroup string) *outsider {
	w.Helper()
	a := &outsider{w: w, out: &lines{}}
	cmd := exec.Command("/proc/self/exe")
	cmd.Env = append(os.Environ(), fmt.Sprintf("%s=%s %s", outsiderEnv, kind, to))
	cmd.Stdout, cmd.Stderr = a.out, a.out
	if cgroup != "" {
		dir, err := os.Open(cgroup)
		w.must(err)
		defer dir.Close()
		cmd.SysProcAttr = &syscall.SysProcAttr{UseCgroupFD: true, CgroupFD: int(dir.Fd())}
	}
	alive, err := cmd.StdinPipe()
	w.must(err)
	w.must(cmd.Start())
	a.stop = sync.OnceFunc(func() {
		alive.Close()
		_ = cmd.Wait()
	})
	w.Cleanup(func() {
		a.stop()
		if w.Failed() {
			w.Logf("attacker %s: %.2000s", kind, a.out)
		}
	})
	return a
}

// waitFor waits for a line of the attacker.
func (a *outsider) waitFor(line string) {
	a.w.Helper()
	testutil.Eventually(a.w, patience, func() error {
		if !strings.Contains(a.out.String(), line+"\n") {
			return fmt.Errorf("the attacker does not say %q", line)
		}
		return nil
	})
}

// replays returns how often the attacker has sent all that it captured.
func (a *outsider) replays() int { return strings.Count(a.out.String(), "replayed\n") }

func stranger(n int) netip.Addr { return netip.AddrFrom4([4]byte{127, 66, byte(n >> 8), byte(n)}) }

func dial(from netip.Addr, to netip.AddrPort) (net.Conn, error) {
	d := net.Dialer{LocalAddr: &net.TCPAddr{IP: from.AsSlice()}, Timeout: time.Second}
	return d.Dial("tcp", to.String())
}

// often runs n copies of do again and again.
func often(n int, do func(i int)) {
	var wg sync.WaitGroup
	for i := range n {
		wg.Go(func() {
			for {
				do(i)
				time.Sleep(100 * time.Millisecond)
			}
		})
	}
	wg.Wait()
}

// silent keeps 600 connections of one address open and says nothing.
func silent(to netip.AddrPort) {
	often(600, func(int) {
		if conn, err := dial(stranger(1), to); err == nil {
			_, _ = io.Copy(io.Discard, conn)
			conn.Close()
		}
	})
}

// flood sends 20 MiB on each of 30 connections: what memberlist would wait for before it decrypts, and
// TLS handshakes that do not end.
func flood(to netip.AddrPort) {
	const size = 20 << 20
	often(30, func(i int) {
		conn, err := dial(stranger(100+i), to)
		if err != nil {
			return
		}
		defer conn.Close()
		head := binary.BigEndian.AppendUint32(append(append([]byte{244, 6}, "strait"...), 10), size-100)
		chunk := make([]byte, 64<<10)
		if i%2 == 0 {
			head = []byte{0x16, 3, 1, 0x40, 0, 1, 0, 0xff, 0xff}
			chunk = append(make([]byte, 16380), 0x16, 3, 1, 0x40, 0, 0, 0, 0, 0)
		}
		_, err = conn.Write(head)
		for sent := 0; sent+len(chunk) < size-100 && err == nil; sent += len(chunk) {
			_, err = conn.Write(chunk)
		}
		if err == nil {
			_, _ = io.Copy(io.Discard, conn)
		}
	})
}

// garbage sends 10,000 datagrams a second, each from an address of its own.
func garbage(to netip.AddrPort) {
	noise := make([]byte, 600)
	for i := range noise {
		noise[i] = byte(rand.Uint32())
	}
	noise[0] = 0
	labelled := append(append([]byte{244, 6}, "strait"...), 1)
	labelled = append(labelled, noise...)
	for n := 0; ; {
		for range 100 {
			n++
			src := netip.AddrFrom4([4]byte{127, 100 + byte(n>>16&63), byte(n >> 8), byte(n)})
			s, err := net.DialUDP("udp", &net.UDPAddr{IP: src.AsSlice()}, net.UDPAddrFromAddrPort(to))
			if err == nil {
				_, _ = s.Write([][]byte{labelled, noise}[n%2])
				s.Close()
			}
		}
		time.Sleep(10 * time.Millisecond)
	}
}

// replay captures the datagrams that others send to the port, and sends the first 200 of them again five
// times a second.
func replay(to netip.AddrPort) {
	const ip = 0x0008 // ETH_P_IP in network order
	fd, err := syscall.Socket(syscall.AF_PACKET, syscall.SOCK_DGRAM, ip)
	if err != nil {
		panic(err)
	}
	out, err := net.DialUDP("udp", &net.UDPAddr{IP: stranger(9).AsSlice()}, net.UDPAddrFromAddrPort(to))
	if err != nil {
		panic(err)
	}
	if err := syscall.SetsockoptTimeval(fd, syscall.SOL_SOCKET, syscall.SO_RCVTIMEO, &syscall.Timeval{Usec: 50_000}); err != nil {
		panic(err)
	}
	var old [][]byte
	buf := make([]byte, 64<<10)
	for next := time.Now(); ; {
		n, from, err := syscall.Recvfrom(fd, buf, 0)
		if ll, ok := from.(*syscall.SockaddrLinklayer); err == nil && ok && ll.Pkttype != syscall.PACKET_OUTGOING && len(old) < 200 {
			if b := datagram(buf[:n], to); b != nil {
				old = append(old, slices.Clone(b))
				fmt.Println("captured", len(old))
			}
		}
		if time.Now().After(next) && len(old) > 0 {
			next = time.Now().Add(200 * time.Millisecond)
			for _, b := range old {
				_, _ = out.Write(b)
			}
			fmt.Println("replayed")
		}
	}
}

// datagram returns what an IPv4 packet carries to a port from others than strangers; nil if nothing.
func datagram(b []byte, to netip.AddrPort) []byte {
	if len(b) < 28 || b[9] != syscall.IPPROTO_UDP {
		return nil
	}
	head := int(b[0]&15) * 4
	dst, _ := netip.AddrFromSlice(b[16:20])
	if len(b) < head+8 || dst != to.Addr() || binary.BigEndian.Uint16(b[head+2:]) != to.Port() || b[12] != 127 || b[13] != 0 {
		return nil
	}
	return b[head+8:]
}
