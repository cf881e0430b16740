package main

import (
	"errors"
	"fmt"
	"net/netip"
	"time"
	"unsafe"

	"golang.org/x/sys/unix"

	"strait.io/strait/internal/l4"
	"strait.io/strait/test/bench/stats"
)

const (
	// streamBytes are what is timed at a time, streamChunk what one write takes.
	streamBytes = 1 << 20
	streamChunk = 64 << 10
)

// pair is both ends of a TCP connection, in the hands of one thread.
type pair struct{ client, server int }

// dialPair connects a socket and takes the other end.
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

// move reads or writes what is possible now.
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

// exchange is one byte there and one back.
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

// streams measures how long a chunk takes, on fresh connections of all sides in each round. Chunks are so
// small that sides take turns thousands of times: what disturbs one disturbs few.
func streams(b *bench, sides []side) (map[string][]float64, error) {
	out := map[string][]float64{}
	buffer := make([]byte, streamChunk)
	for range b.size.rounds {
		pairs := make([]pair, len(sides))
		for i := range sides {
			p, err := streamPair(&sides[i], buffer)
			if err != nil {
				return nil, fmt.Errorf("%s: %w", sides[i].name, err)
			}
			pairs[i] = p
		}
		took := make([][]float64, len(sides))
		for n := range b.size.samples {
			for i := range sides {
				i = (i + n) % len(sides)
				d, err := pairs[i].pump(streamBytes, buffer)
				if err != nil {
					return nil, fmt.Errorf("%s: %w", sides[i].name, err)
				}
				took[i] = append(took[i], ns(d))
			}
		}
		for i, s := range sides {
			out[s.name] = append(out[s.name], stats.Median(took[i]))
			if err := closeAll([]int{pairs[i].client, pairs[i].server}); err != nil {
				return nil, err
			}
		}
	}
	return out, nil
}

// streamPair connects and sends until windows have grown.
func streamPair(s *side, buffer []byte) (pair, error) {
	fds, err := s.open(1, unix.SOCK_STREAM)
	if err != nil {
		return pair{}, err
	}
	p, err := dialPair(s, fds[0])
	if err != nil {
		return pair{}, err
	}
	_, err = p.pump(16*streamBytes, buffer)
	return p, err
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
	// Throughput is bytes ÷ time: the ratio is the other way round.
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
