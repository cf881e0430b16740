package traffic

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/netip"
	"time"

	"golang.org/x/sync/errgroup"
)

// The ports that Serve listens on.
const (
	HTTPPort = 8080
	UDPPort  = 5353
)

// Serve answers with h over HTTP and UDP, on h.Address, until ctx ends.
func Serve(ctx context.Context, h Hello) error {
	tcp, err := net.Listen("tcp", netip.AddrPortFrom(h.Address, HTTPPort).String())
	if err != nil {
		return fmt.Errorf("listen for HTTP: %w", err)
	}
	udp, err := net.ListenPacket("udp", netip.AddrPortFrom(h.Address, UDPPort).String())
	if err != nil {
		tcp.Close()
		return fmt.Errorf("listen for UDP: %w", err)
	}
	answer := []byte(h.String())
	web := &http.Server{
		ReadHeaderTimeout: 5 * time.Second,
		Handler: http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Content-Type", "text/plain; charset=utf-8")
			_, _ = w.Write(answer) // fails if the client went away, which the client reports
		}),
	}
	g, ctx := errgroup.WithContext(ctx)
	g.Go(func() error {
		if err := web.Serve(tcp); !errors.Is(err, http.ErrServerClosed) {
			return fmt.Errorf("serve HTTP: %w", err)
		}
		return nil
	})
	g.Go(func() error { return echo(udp, answer) })
	g.Go(func() error {
		<-ctx.Done()
		return errors.Join(web.Close(), udp.Close())
	})
	return g.Wait()
}

// echo answers every datagram with the same text until the socket is closed.
func echo(udp net.PacketConn, answer []byte) error {
	buf := make([]byte, 2048)
	for {
		_, from, err := udp.ReadFrom(buf)
		if errors.Is(err, net.ErrClosed) {
			return nil
		}
		if err == nil {
			_, err = udp.WriteTo(answer, from)
		}
		if err != nil && !errors.Is(err, net.ErrClosed) {
			continue // an ICMP error for an earlier answer; the socket still works
		}
	}
}
