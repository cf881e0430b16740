package traffic

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/netip"
	"net/url"
	"strconv"
	"time"
)

// Timeout limits a whole call: name resolution, connection and answer.
const Timeout = time.Second

// Call is the outcome of one call.
type Call struct {
	// At is when the call began. Micros is how long it took, in microseconds.
	At     time.Time `json:"at"`
	Micros int64     `json:"us"`
	// Hello names the server that answered; empty if Err is set.
	Hello
	// To is the address that was called: the URL's, or the one that its name resolved to.
	To  netip.AddrPort `json:"to,omitzero"`
	Err string         `json:"err,omitempty"`
}

// OK reports whether a well-formed answer came in time.
func (c Call) OK() bool { return c.Err == "" }

// End returns when the call ended.
func (c Call) End() time.Time { return c.At.Add(time.Duration(c.Micros) * time.Microsecond) }

// Do makes one call to "http://HOST[:PORT]/" or "udp://HOST:PORT". If HOST is a name, the resolvers
// in /etc/resolv.conf are asked, and only the first address is tried.
func Do(ctx context.Context, target string) Call {
	c := Call{At: time.Now()}
	ctx, cancel := context.WithTimeout(ctx, Timeout)
	defer cancel()
	text, err := call(ctx, target, &c)
	if err == nil {
		c.Hello, err = ParseHello(text)
	}
	c.Micros = time.Since(c.At).Microseconds()
	if err != nil {
		c.Err = err.Error()
	}
	return c
}

func call(ctx context.Context, target string, c *Call) (string, error) {
	u, err := url.Parse(target)
	if err != nil {
		return "", fmt.Errorf("target %q: %w", target, err)
	}
	c.To, err = resolve(ctx, u)
	if err != nil {
		return "", err
	}
	switch u.Scheme {
	case "http":
		return callHTTP(ctx, u, c.To)
	case "udp":
		return callUDP(ctx, c.To)
	}
	return "", fmt.Errorf("target %q: want http:// or udp://", target)
}

// resolve returns the address to call.
func resolve(ctx context.Context, u *url.URL) (netip.AddrPort, error) {
	port, err := strconv.ParseUint(u.Port(), 10, 16)
	if u.Port() == "" && u.Scheme == "http" {
		port, err = 80, nil
	}
	if err != nil {
		return netip.AddrPort{}, fmt.Errorf("target %q: port: %w", u, err)
	}
	if ip, err := netip.ParseAddr(u.Hostname()); err == nil {
		return netip.AddrPortFrom(ip, uint16(port)), nil
	}
	r := net.Resolver{PreferGo: true} // has no cache, so every call asks
	ips, err := r.LookupNetIP(ctx, "ip4", u.Hostname())
	if err != nil {
		return netip.AddrPort{}, fmt.Errorf("resolve: %w", err)
	}
	return netip.AddrPortFrom(ips[0].Unmap(), uint16(port)), nil
}

func callHTTP(ctx context.Context, u *url.URL, to netip.AddrPort) (string, error) {
	t := &http.Transport{
		DisableKeepAlives: true,
		DialContext: func(ctx context.Context, _, _ string) (net.Conn, error) {
			return new(net.Dialer).DialContext(ctx, "tcp", to.String())
		},
	}
	defer t.CloseIdleConnections()
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, u.String(), nil)
	if err != nil {
		return "", fmt.Errorf("make request: %w", err)
	}
	resp, err := t.RoundTrip(req) // not http.Client, which would follow redirects
	if err != nil {
		return "", err
	}
	defer resp.Body.Close()
	body, err := io.ReadAll(io.LimitReader(resp.Body, 4096))
	if err != nil {
		return "", fmt.Errorf("read answer: %w", err)
	}
	if resp.StatusCode != http.StatusOK {
		return "", errors.New("answer: " + resp.Status)
	}
	return string(body), nil
}

func callUDP(ctx context.Context, to netip.AddrPort) (string, error) {
	conn, err := new(net.Dialer).DialContext(ctx, "udp", to.String())
	if err != nil {
		return "", err
	}
	defer conn.Close()
	if deadline, ok := ctx.Deadline(); ok {
		if err := conn.SetDeadline(deadline); err != nil {
			return "", fmt.Errorf("set deadline: %w", err)
		}
	}
	if _, err := conn.Write([]byte("hello?\n")); err != nil {
		return "", err
	}
	buf := make([]byte, 2048)
	n, err := conn.Read(buf)
	if err != nil {
		return "", err
	}
	return string(buf[:n]), nil
}
