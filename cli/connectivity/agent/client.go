package agent

import (
	"bytes"
	"context"
	"crypto/rand"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/netip"
	"strconv"
	"sync"
	"time"

	"strait.io/strait/cli/connectivity"
)

// parallel is how many calls run at a time: few enough that a small node answers them all in time.
const parallel = 8

// Run makes calls, and returns the outcomes in their order.
func Run(ctx context.Context, calls []connectivity.Call) []connectivity.Outcome {
	out := make([]connectivity.Outcome, len(calls))
	slots := make(chan struct{}, parallel)
	var wg sync.WaitGroup
	for i, call := range calls {
		slots <- struct{}{}
		wg.Go(func() {
			defer func() { <-slots }()
			out[i] = patiently(ctx, call)
		})
	}
	wg.Wait()
	return out
}

// Limits of one try.
const (
	// These are those of the first try. Each one after it has as much more: a busy node answers late.
	tryTimeout   = 1500 * time.Millisecond
	largeTimeout = 5 * time.Second
	pause        = 250 * time.Millisecond
)

// patiently repeats a call until it succeeds or its time is over. It tries at least twice, because one
// packet may always be lost.
func patiently(ctx context.Context, call connectivity.Call) (out connectivity.Outcome) {
	over := time.Now().Add(time.Duration(call.PatienceMillis) * time.Millisecond)
	for tries := 1; ; tries++ {
		limit := tryTimeout
		if call.Size > 64<<10 {
			limit = largeTimeout
		}
		bounded, cancel := context.WithTimeout(ctx, time.Duration(tries)*limit)
		out = try(bounded, call)
		cancel()
		out.ID, out.Tries = call.ID, tries
		if out.Stage == connectivity.Done || ctx.Err() != nil || tries > 1 && time.Now().After(over) {
			return out
		}
		time.Sleep(pause)
	}
}

// try makes a call once.
func try(ctx context.Context, call connectivity.Call) (out connectivity.Outcome) {
	fail := func(stage connectivity.Stage, err error) connectivity.Outcome {
		return connectivity.Outcome{Stage: stage, Error: short(err)}
	}
	addr, err := resolve(ctx, call)
	if err != nil {
		return fail(connectivity.Resolve, err)
	}
	began := time.Now()
	conn, err := new(net.Dialer).DialContext(ctx, call.Network, netip.AddrPortFrom(addr, call.Port).String())
	if err != nil {
		return fail(connectivity.Connect, err)
	}
	defer conn.Close()
	if end, has := ctx.Deadline(); has {
		_ = conn.SetDeadline(end)
	}
	over := overTCP
	if call.Network[0] == 'u' {
		over = overUDP
	}
	g, stage, err := over(ctx, conn, call.Size)
	if err != nil {
		return fail(stage, err)
	}
	return connectivity.Outcome{Stage: connectivity.Done, Server: g.Server, Seen: g.Seen, Millis: float64(time.Since(began).Microseconds()) / 1000}
}

// resolve returns the address of a call's host, of the family that the call wants.
func resolve(ctx context.Context, call connectivity.Call) (netip.Addr, error) {
	if addr, err := netip.ParseAddr(call.Host); err == nil {
		return addr, nil
	}
	family := "ip" + call.Network[len(call.Network)-1:]
	all, err := net.DefaultResolver.LookupNetIP(ctx, family, call.Host)
	if err != nil {
		return netip.Addr{}, err
	}
	if len(all) == 0 {
		return netip.Addr{}, fmt.Errorf("%s has no address", call.Host)
	}
	return all[0].Unmap(), nil
}

// overTCP sends a body by HTTP, and wants it back.
func overTCP(ctx context.Context, conn net.Conn, size int) (g greeting, stage connectivity.Stage, err error) {
	body := make([]byte, size)
	_, _ = rand.Read(body)
	sent := false
	transport := &http.Transport{
		DisableKeepAlives: true,
		DialContext:       func(context.Context, string, string) (net.Conn, error) { return conn, nil },
	}
	defer transport.CloseIdleConnections()
	request, err := http.NewRequestWithContext(ctx, http.MethodPost, "http://probe/", &noticed{bytes.NewReader(body), &sent})
	if err != nil {
		return g, connectivity.Send, err
	}
	request.ContentLength = int64(size)
	answer, err := transport.RoundTrip(request)
	if err != nil {
		// What is sent is in the kernel's buffer first, so only the answer shows that it arrived.
		if !sent {
			return g, connectivity.Send, err
		}
		return g, connectivity.Receive, err
	}
	defer answer.Body.Close()
	got, err := io.ReadAll(io.LimitReader(answer.Body, int64(size)+1))
	switch {
	case err != nil:
		return g, connectivity.Receive, fmt.Errorf("%w after %d of %d bytes", err, len(got), size)
	case answer.StatusCode != http.StatusOK:
		return g, connectivity.Receive, errors.New("HTTP status " + strconv.Itoa(answer.StatusCode))
	case !bytes.Equal(got, body):
		return g, connectivity.Receive, errors.New("the answer is not what was sent")
	}
	if err := json.Unmarshal([]byte(answer.Header.Get(answerHeader)), &g); err != nil {
		return g, connectivity.Receive, errors.New("what answers is not a pod of this test")
	}
	return g, connectivity.Done, nil
}

// noticed is a body that tells when it was read to its end.
type noticed struct {
	io.Reader
	ended *bool
}

func (n *noticed) Read(p []byte) (int, error) {
	read, err := n.Reader.Read(p)
	*n.ended = *n.ended || err == io.EOF
	return read, err
}

// resend is when a datagram is sent again on the same socket, and so to the same pod. The first
// ones that are larger than a tunnel's MTU are always lost: by them, the kernels of the client and
// of the server learn it.
const resend = 300 * time.Millisecond

// overUDP sends a datagram until there is an answer of the same size, or the time is over.
func overUDP(ctx context.Context, conn net.Conn, size int) (g greeting, stage connectivity.Stage, err error) {
	datagram := ask(size)
	for {
		g, stage, err = exchange(ctx, conn, datagram, resend)
		if err == nil || !isTimeout(err) || ctx.Err() != nil {
			return g, stage, err
		}
	}
}

// ask makes a datagram that asks for an answer, of at least a size.
func ask(size int) []byte {
	datagram := make([]byte, max(size, least))
	_, _ = rand.Read(datagram[:1+nonceSize])
	datagram[0] = question
	return datagram
}

// exchange sends a datagram once, and waits for its answer: one to an earlier sending of it will do.
func exchange(ctx context.Context, conn net.Conn, datagram []byte, limit time.Duration) (g greeting, stage connectivity.Stage, err error) {
	wait := time.Now().Add(limit)
	if end, has := ctx.Deadline(); has && end.Before(wait) {
		wait = end
	}
	_ = conn.SetDeadline(wait)
	if _, err := conn.Write(datagram); err != nil {
		return g, connectivity.Send, err
	}
	answer := make([]byte, 64<<10)
	for {
		n, err := conn.Read(answer)
		if err != nil {
			return g, connectivity.Receive, err
		}
		if g, ok := greetingOf(answer[:n], datagram); ok {
			return g, connectivity.Done, nil
		}
	}
}

// short is the error without what the report says anyway: which addresses.
func short(err error) string {
	var dns *net.DNSError
	var op *net.OpError
	switch {
	case errors.As(err, &dns):
		return dns.Error()
	case errors.Is(err, context.DeadlineExceeded), isTimeout(err):
		return "no answer in time"
	case errors.As(err, &op):
		return op.Err.Error()
	}
	return err.Error()
}

func isTimeout(err error) bool {
	var t net.Error
	return errors.As(err, &t) && t.Timeout()
}
