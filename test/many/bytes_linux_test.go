package many

import (
	"bufio"
	"bytes"
	"cmp"
	"context"
	"encoding/binary"
	"fmt"
	"net"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"sync"
	"syscall"
)

// meters returns what asks a daemon for its metrics, on the loopback of its namespace, where no router
// counts that.
func (n *node) meters() *http.Client {
	return &http.Client{Transport: &http.Transport{DialContext: func(ctx context.Context, network, addr string) (conn net.Conn, err error) {
		err = inside(n.netns(), func() (err error) {
			conn, err = new(net.Dialer).DialContext(ctx, network, addr)
			return err
		})
		return conn, err
	}}}
}

// sent returns how many bytes the gossip of the nodes has sent since their daemons started.
func (f *fleet) sent(nodes []*node) (udp, tcp float64) {
	f.Helper()
	var mu sync.Mutex
	f.must(each(nodes, func(ctx context.Context, n *node) error {
		got, err := n.metric(ctx, "strait_gossip_bytes_total{")
		mu.Lock()
		defer mu.Unlock()
		for labels, value := range got {
			switch {
			case !strings.Contains(labels, `"sent"`):
			case strings.Contains(labels, `"udp"`):
				udp += value
			case strings.Contains(labels, `"tcp"`):
				tcp += value
			}
		}
		if err == nil && len(got) != 4 {
			err = fmt.Errorf("%d series of gossip's bytes", len(got))
		}
		return err
	}))
	return udp, tcp
}

// metric returns the series of a metric.
func (n *node) metric(ctx context.Context, prefix string) (map[string]float64, error) {
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, "http://127.0.0.1:9964/metrics", nil)
	if err != nil {
		return nil, err
	}
	answer, err := n.meter.Do(request)
	if err != nil {
		return nil, err
	}
	defer answer.Body.Close()
	out := map[string]float64{}
	lines := bufio.NewScanner(answer.Body)
	for lines.Scan() {
		if name, value, ok := strings.Cut(lines.Text(), " "); ok && strings.HasPrefix(name, prefix) {
			if out[name], err = strconv.ParseFloat(value, 64); err != nil {
				return nil, err
			}
		}
	}
	return out, lines.Err()
}

// The kinds of what goes over the wire. A connection says which it is when it begins.
const (
	datagrams = "datagrams of memberlist"
	members   = "exchanges of memberlist"
	streams   = "streams of records"
	asks      = "questions who is there"
	signer    = "requests for statements"
	others    = "all else of gossip"
	outside   = "nothing of gossip"
)

// kinds are those of connections, by what they ask for.
var kinds = []struct{ protocol, kind string }{
	{"strait-records/2", streams}, {"strait-members/1", members}, {"strait-signer/1", signer}, {"strait-records/1", asks},
}

// tally is how much of a kind there was: packets, what they carried without the headers of IP, UDP and TCP,
// and with them.
type tally struct{ connections, packets, payload, bytes int }

func (t *tally) add(payload, bytes int) {
	t.packets, t.payload, t.bytes = t.packets+1, t.payload+payload, t.bytes+bytes
}

// wire counts what all machines send, at the routers, which see each packet of theirs once.
type wire struct {
	mu          sync.Mutex
	kinds       map[string]*tally // of what belongs to no connection
	connections map[ends]*connection
}

// ends are the source and the destination of a packet; of a connection, the lower one first.
type ends [2][6]byte

type connection struct {
	tally
	kind string // empty until it is known
}

// watch counts until the test ends.
func (f *fleet) watch() *wire {
	f.Helper()
	w := &wire{kinds: map[string]*tally{}, connections: map[ends]*connection{}}
	for _, c := range f.clusters {
		var socket int
		ports := map[int]bool{}
		f.must(inside(c.name, func() (err error) {
			for _, n := range c.nodes {
				link, err := net.InterfaceByName(n.name())
				if err != nil {
					return err
				}
				ports[link.Index] = true
			}
			socket, err = syscall.Socket(syscall.AF_PACKET, syscall.SOCK_DGRAM|syscall.SOCK_CLOEXEC, int(htons(syscall.ETH_P_IP)))
			return err
		}))
		// The buffer has room for what comes while this process does not run.
		f.must(syscall.SetsockoptInt(socket, syscall.SOL_SOCKET, syscall.SO_RCVBUFFORCE, 32<<20))
		f.must(syscall.SetsockoptTimeval(socket, syscall.SOL_SOCKET, syscall.SO_RCVTIMEO, &syscall.Timeval{Usec: 200_000}))
		end, ended := make(chan struct{}), make(chan struct{})
		go func() {
			defer close(ended)
			w.read(socket, ports, end)
		}()
		f.Cleanup(func() {
			close(end)
			<-ended
			syscall.Close(socket)
		})
	}
	return w
}

func htons(v uint16) uint16 {
	return binary.NativeEndian.Uint16(binary.BigEndian.AppendUint16(nil, v))
}

func (w *wire) read(socket int, ports map[int]bool, end <-chan struct{}) {
	buf := make([]byte, 4096)
	for {
		n, from, err := syscall.Recvfrom(socket, buf, 0)
		select {
		case <-end:
			return
		default:
		}
		if link, ok := from.(*syscall.SockaddrLinklayer); err == nil && ok && ports[link.Ifindex] {
			w.packet(buf[:n])
		}
	}
}

// packet counts one of IPv4. Of a long one only the beginning is there.
func (w *wire) packet(b []byte) {
	if len(b) < 20 {
		return
	}
	header, total := int(b[0]&15)*4, int(binary.BigEndian.Uint16(b[2:]))
	w.mu.Lock()
	defer w.mu.Unlock()
	const udp, tcp = 17, 6
	if proto := b[9]; proto != udp && proto != tcp || len(b) < header+20 && proto == tcp || len(b) < header+8 {
		w.of(outside).add(total-header, total)
		return
	}
	transport := b[header:]
	e := ends{[6]byte(slices.Concat(b[12:16], transport[:2])), [6]byte(slices.Concat(b[16:20], transport[2:4]))}
	gossip := binary.BigEndian.Uint16(transport) == port || binary.BigEndian.Uint16(transport[2:]) == port
	switch {
	case !gossip:
		w.of(outside).add(total-header, total)
	case b[9] == udp:
		w.of(datagrams).add(total-header-8, total)
	default:
		skip := int(transport[12]>>4) * 4
		w.segment(e, transport[min(skip, len(transport)):], total-header-skip, total)
	}
}

// segment counts one of TCP. The kind of its connection is in the first message of TLS, which may be seen
// after the answer to it: that comes by another router.
func (w *wire) segment(e ends, data []byte, payload, total int) {
	if slices.Compare(e[0][:], e[1][:]) > 0 {
		e[0], e[1] = e[1], e[0]
	}
	c := w.connections[e]
	if c == nil {
		c = &connection{}
		w.connections[e] = c
	}
	c.add(payload, total)
	const handshake, hello = 22, 1
	if len(data) > 6 && data[0] == handshake && data[5] == hello {
		c.connections = 1
		for _, k := range kinds {
			if bytes.Contains(data, []byte(k.protocol)) {
				c.kind = k.kind
				break
			}
		}
	}
}

func (w *wire) of(kind string) *tally {
	if w.kinds[kind] == nil {
		w.kinds[kind] = &tally{}
	}
	return w.kinds[kind]
}

// take returns what was counted since it was called last.
func (w *wire) take() counted {
	w.mu.Lock()
	defer w.mu.Unlock()
	out := counted{}
	for k, t := range w.kinds {
		out[k], *t = *t, tally{}
	}
	for _, c := range w.connections {
		kind := cmp.Or(c.kind, others)
		t := out[kind]
		t.connections += c.connections
		t.packets, t.payload, t.bytes = t.packets+c.packets, t.payload+c.payload, t.bytes+c.bytes
		out[kind], c.tally = t, tally{}
	}
	return out
}

// counted is what was counted of each kind.
type counted map[string]tally

// gossip returns what gossip's datagrams and connections carried.
func (c counted) gossip() (bytes int) {
	for k, t := range c {
		if k != outside {
			bytes += t.payload
		}
	}
	return bytes
}

func (c counted) String() string {
	var b strings.Builder
	for _, k := range []string{datagrams, members, streams, asks, signer, others, outside} {
		t := c[k]
		fmt.Fprintf(&b, "\n  %-24s %6d connections %7d packets %9d bytes %9d with headers", k, t.connections, t.packets, t.payload, t.bytes)
	}
	return b.String()
}
