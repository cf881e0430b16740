package main

import (
	"errors"
	"fmt"
	"net/netip"
	"slices"
	"time"
	"unsafe"

	"golang.org/x/sys/unix"

	"strait.io/strait/internal/l4"
	"strait.io/strait/test/bench/stats"
)

const (
	// streamBytes is how many bytes are timed at once. streamChunk is the size of one write.
	streamBytes = 1 << 20
	streamChunk = 64 << 10
)

// pair is both ends of a TCP connection, used by one thread.
type pair struct{ client, server int }

// dialPair connects a socket and accepts the other end.
func dialPair(s *side, fd int) (pair, error) {
	if _, err := call("connect", unix.SYS_CONNECT, uintptr(fd), uintptr(unsafe.Pointer(raw(s.dial()))), unix.SizeofSockaddrInet4, 0, 0, 0); err != nil {
		return pair{}, err
	}
	server, err := accept(s.listener)
	if err != nil {
		return pair{}, err
	}
	err = errors.Join(unix.SetNonblock(fd, true), unix.SetNonblock(server, true),
		unix.SetsockoptInt(fd, unix.IPPROTO_TCP, unix.TCP_NODELAY, 1), unix.SetsockoptInt(server, unix.IPPROTO_TCP, unix.TCP_NODELAY, 1))
	return pair{fd, server}, err
}

// pump moves bytes from the client to the server and returns how long it took.
func (p pair) pump(bytes int, buffer []byte) (time.Duration, error) {
	start := time.Now()
	sent, received := 0, 0
	for received < bytes {
		n, err := move("write", unix.SYS_WRITE, p.client, buffer[:min(len(buffer), bytes-sent)])
		if err != nil {
			return 0, err
		}
		sent += n
		for n > 0 || sent == bytes && received < bytes {
			if n, err = move("read", unix.SYS_READ, p.server, buffer); err != nil {
				return 0, err
			}
			received += n
		}
	}
	return time.Since(start), nil
}

// move reads or writes as much as is possible without waiting.
func move(name string, trap uintptr, fd int, b []byte) (int, error) {
	if len(b) == 0 {
		return 0, nil
	}
	n, err := call(name, trap, uintptr(fd), uintptr(unsafe.Pointer(&b[0])), uintptr(len(b)), 0, 0, 0)
	if errors.Is(err, unix.EAGAIN) {
		return 0, nil
	}
	return n, err
}

// exchange sends one byte to the server and one back, and returns how long it took.
func (p pair) exchange() (time.Duration, error) {
	var b [1]byte
	start := time.Now()
	for _, step := range []struct {
		trap uintptr
		fd   int
	}{{unix.SYS_WRITE, p.client}, {unix.SYS_READ, p.server}, {unix.SYS_WRITE, p.server}, {unix.SYS_READ, p.client}} {
		if _, err := call("exchange", step.trap, uintptr(step.fd), uintptr(unsafe.Pointer(&b[0])), 1, 0, 0, 0); err != nil {
			return 0, err
		}
	}
	return time.Since(start), nil
}

// streams measures how long streamBytes take, on fresh connections in each round. They are so few
// that sides take turns thousands of times, and a disturbance affects only a few samples. A
// connection's place in memory changes the result by a few percent and depends on the order in
// which sockets are opened. So each round opens two of each side in a palindromic order, and every
// other round begins with the other side.
func streams(b *bench, sides []side) (map[string][]float64, error) {
	out := map[string][]float64{}
	buffer := make([]byte, streamChunk)
	for round := range b.size.rounds {
		order := slices.Clone(sides)
		if round%2 == 1 {
			slices.Reverse(order)
		}
		for _, s := range slices.Backward(slices.Clone(order)) {
			order = append(order, s)
		}
		took, err := streamRound(b.size.samples, order, buffer)
		if err != nil {
			return nil, err
		}
		mean := map[string]float64{}
		for i, s := range order {
			mean[s.name] += stats.Median(took[i]) / 2
		}
		for name, v := range mean {
			out[name] = append(out[name], v)
		}
	}
	return out, nil
}

// streamRound returns the time in ns of each sample, by side.
func streamRound(samples int, sides []side, buffer []byte) ([][]float64, error) {
	pairs, err := streamPairs(sides, buffer)
	if err != nil {
		return nil, err
	}
	took := make([][]float64, len(sides))
	for n := range samples {
		for i := range sides {
			i = (i + n) % len(sides)
			d, err := pairs[i].pump(streamBytes, buffer)
			if err != nil {
				return nil, fmt.Errorf("%s: %w", sides[i].name, err)
			}
			took[i] = append(took[i], ns(d))
		}
	}
	var errs []error
	for _, p := range pairs {
		errs = append(errs, closeAll([]int{p.client, p.server}))
	}
	return took, errors.Join(errs...)
}

// streamPairs connects each side and sends until TCP windows have grown. It opens all sockets
// before that: opening one in another cgroup moves this process there, and perhaps to another
// processor, far from the memory of an existing connection.
func streamPairs(sides []side, buffer []byte) ([]pair, error) {
	pairs := make([]pair, len(sides))
	for i, s := range sides {
		fds, err := s.open(1, unix.SOCK_STREAM)
		if err != nil {
			return nil, err
		}
		pairs[i].client = fds[0]
	}
	for i := range sides {
		var err error
		if pairs[i], err = dialPair(&sides[i], pairs[i].client); err != nil {
			return nil, fmt.Errorf("%s: %w", sides[i].name, err)
		}
	}
	for range 16 {
		for _, p := range pairs {
			if _, err := p.pump(streamBytes, buffer); err != nil {
				return nil, err
			}
		}
	}
	return pairs, nil
}

func measureStream(b *bench) error {
	w, done, err := b.loaded(l4.TCP)
	if err != nil {
		return err
	}
	listener, err := listenTCP(podPort)
	if err != nil {
		return err
	}
	took, err := streams(b, []side{
		b.bareSide("direct", listener, func() netip.AddrPort { return hot.direct(w) }),
		b.servedSide("through", listener, func() netip.AddrPort { return hot.through(w) }),
	})
	if err != nil {
		return err
	}
	// Throughput is bytes ÷ time, so the ratio is the inverse of the times'.
	err = b.setRatios(took, "through", map[string]string{"stream_ratio": "direct"})
	if err != nil {
		return err
	}
	gbits := make([]float64, len(took["direct"]))
	for i, t := range took["direct"] {
		gbits[i] = float64(streamBytes) * 8 / t
	}
	if err := b.setRounds("stream_direct_gbit_s", gbits); err != nil {
		return fmt.Errorf("stream: %w", err)
	}
	return errors.Join(unix.Close(listener), done())
}
