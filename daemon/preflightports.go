package daemon

import (
	"context"
	"crypto/rand"
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/netip"
	"strconv"
	"strings"
	"sync"
	"time"

	"strait.io/strait/daemon/api"
)

// A probe is probeMagic and 16 random bytes. Its answer is the same, followed by the time of the machine
// that answers, in nanoseconds since 1970. No other program on these ports answers like that.
const (
	probeMagic  = "strait-preflight"
	probeSize   = len(probeMagic) + 16
	probeAnswer = probeSize + 8
)

// Bounds of a probe. It is repeated: UDP packets can get lost, and the other machine may not listen
// yet.
const (
	probePatience = 8 * time.Second
	probeAgain    = 500 * time.Millisecond
	maxProbing    = 64
)

// PreflightServe answers probes at those ports of straitd that are free, until ctx ends.
func PreflightServe(ctx context.Context, c Config) error {
	var config net.ListenConfig
	var running sync.WaitGroup
	var open []io.Closer
	for _, p := range listening(c) {
		if !p.probed {
			continue
		}
		if p.network == "udp" {
			if l, err := config.ListenPacket(ctx, p.network, p.addr); err == nil {
				open = append(open, l)
				running.Go(func() { answerPackets(l) })
			}
			continue
		}
		if l, err := config.Listen(ctx, p.network, p.addr); err == nil {
			open = append(open, l)
			running.Go(func() { answerConnections(l) })
		}
	}
	<-ctx.Done()
	var errs []error
	for _, l := range open {
		errs = append(errs, l.Close())
	}
	running.Wait()
	return errors.Join(errs...)
}

func answerPackets(l net.PacketConn) {
	buffer := make([]byte, probeAnswer)
	for {
		n, from, err := l.ReadFrom(buffer)
		if errors.Is(err, net.ErrClosed) {
			return
		}
		if err == nil && n == probeSize && strings.HasPrefix(string(buffer[:n]), probeMagic) {
			_, _ = l.WriteTo(answerTo(buffer[:n]), from) // a lost answer is what the probe is for
		}
	}
}

func answerConnections(l net.Listener) {
	for {
		c, err := l.Accept()
		if errors.Is(err, net.ErrClosed) {
			return
		}
		if err != nil {
			time.Sleep(probeAgain / 10) // too many open files: those that are open end soon
			continue
		}
		go func() {
			defer c.Close()
			_ = c.SetDeadline(time.Now().Add(probePatience))
			question := make([]byte, probeSize)
			if _, err := io.ReadFull(c, question); err == nil && strings.HasPrefix(string(question), probeMagic) {
				_, _ = c.Write(answerTo(question))
			}
		}()
	}
}

func answerTo(question []byte) []byte {
	return binary.BigEndian.AppendUint64(append([]byte(nil), question...), uint64(time.Now().UnixNano()))
}

// PreflightDial reads api.PortProbes as JSON, sends them to other machines, some at a time, and returns what
// came back, in order.
func PreflightDial(ctx context.Context, in io.Reader) ([]api.PortReply, error) {
	var probes []api.PortProbe
	// One value, not all of the stream: its end does not reach a pod by every API server.
	if err := json.NewDecoder(in).Decode(&probes); err != nil {
		return nil, fmt.Errorf("read the probes: %w", err)
	}
	return dialAll(ctx, probes), nil
}

func dialAll(ctx context.Context, probes []api.PortProbe) []api.PortReply {
	out := []api.PortReply{}
	for _, p := range probes {
		for _, port := range p.Ports {
			out = append(out, api.PortReply{Node: p.Node, Addr: p.Addr, Port: port})
		}
	}
	var running sync.WaitGroup
	places := make(chan struct{}, maxProbing)
	for i := range out {
		places <- struct{}{}
		running.Go(func() {
			defer func() { <-places }()
			if err := probePort(ctx, &out[i]); err != nil {
				out[i].Error = plainly(err)
			}
		})
	}
	running.Wait()
	return out
}

// errOther means that something else listens at the port.
var errOther = errors.New("another program answered there")

// probePort sends probes to a port until it answers, for as long as probePatience.
func probePort(ctx context.Context, r *api.PortReply) error {
	text, network, _ := strings.Cut(r.Port, "/")
	port, err := strconv.ParseUint(text, 10, 16)
	if err != nil {
		return fmt.Errorf("port %s: want a number and a protocol, such as 7946/UDP", r.Port)
	}
	to := netip.AddrPortFrom(r.Addr, uint16(port)).String()
	ctx, cancel := context.WithTimeout(ctx, probePatience)
	defer cancel()
	for {
		err := probeOnce(ctx, strings.ToLower(network), to, r)
		if err == nil || errors.Is(err, errOther) || !sleep(ctx, probeAgain) {
			return err
		}
	}
}

// probeOnce sends one probe, and waits a moment for the answer.
func probeOnce(ctx context.Context, network, to string, r *api.PortReply) error {
	c, err := (&net.Dialer{Timeout: 2 * probeAgain}).DialContext(ctx, network, to)
	if err != nil {
		return err
	}
	defer c.Close()
	question := make([]byte, probeSize)
	_, _ = rand.Read(question[copy(question, probeMagic):]) // never fails
	sent := time.Now()
	_ = c.SetDeadline(sent.Add(2 * probeAgain))
	if _, err := c.Write(question); err != nil {
		return err
	}
	answer := make([]byte, probeAnswer)
	n, err := io.ReadAtLeast(c, answer, probeAnswer)
	switch {
	case err == nil && string(answer[:probeSize]) == string(question):
	case err == nil || n > 0 || errors.Is(err, io.EOF):
		return errOther
	default:
		return err
	}
	now := time.Now()
	there := time.Unix(0, int64(binary.BigEndian.Uint64(answer[probeSize:])))
	r.RTT = now.Sub(sent).Seconds()
	r.Ahead = there.Sub(sent.Add(now.Sub(sent) / 2)).Seconds()
	return nil
}
