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

// Bounds of a probe. UDP packets can get lost, so they are sent a few times.
const (
	probePatience = 2 * time.Second
	probeAgain    = 500 * time.Millisecond
	maxProbing    = 32
)

// PreflightServe answers probes at the ports that straitd would listen on, until ctx ends. It calls ready
// once it listens at all of them that are free.
func PreflightServe(ctx context.Context, c Config, ready func()) error {
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
	ready()
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

func probePort(ctx context.Context, r *api.PortReply) error {
	text, network, _ := strings.Cut(r.Port, "/")
	port, err := strconv.ParseUint(text, 10, 16)
	if err != nil {
		return fmt.Errorf("port %s: want a number and a protocol, such as 7946/UDP", r.Port)
	}
	ctx, cancel := context.WithTimeout(ctx, probePatience)
	defer cancel()
	c, err := new(net.Dialer).DialContext(ctx, strings.ToLower(network), netip.AddrPortFrom(r.Addr, uint16(port)).String())
	if err != nil {
		return err
	}
	defer c.Close()
	question := make([]byte, probeSize)
	_, _ = rand.Read(question[copy(question, probeMagic):]) // never fails
	began := time.Now()
	deadline, _ := ctx.Deadline()
	for {
		sent := time.Now()
		if _, err = c.Write(question); err != nil {
			return err
		}
		until := deadline
		if again := sent.Add(probeAgain); c.LocalAddr().Network() == "udp" && again.Before(deadline) {
			until = again
		}
		_ = c.SetReadDeadline(until)
		answer := make([]byte, probeAnswer)
		n, err := io.ReadAtLeast(c, answer, probeAnswer)
		var timeout net.Error
		switch {
		case err == nil && string(answer[:probeSize]) == string(question):
			now := time.Now()
			there := time.Unix(0, int64(binary.BigEndian.Uint64(answer[probeSize:])))
			r.RTT = now.Sub(began).Seconds()
			r.Ahead = there.Sub(sent.Add(now.Sub(sent) / 2)).Seconds()
			return nil
		case err == nil || n > 0 || errors.Is(err, io.EOF):
			return errOther
		case errors.As(err, &timeout) && timeout.Timeout() && time.Now().Before(deadline):
		default:
			return err
		}
	}
}
