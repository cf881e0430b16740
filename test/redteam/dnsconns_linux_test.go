package redteam

import (
	"context"
	"encoding/binary"
	"fmt"
	"io"
	"net"
	"net/netip"
	"sync/atomic"
	"testing"
	"time"

	"strait.io/strait/internal/testutil"
)

// TestDNSConnections: clients of a daemon's DNS server keep 1,000 connections from 100 addresses open: they
// say nothing, begin a query that they do not end, or ask without reading the answers. Others are answered
// over both protocols meanwhile, and the daemon does not grow.
func TestDNSConnections(t *testing.T) {
	if !inside(t) {
		return
	}
	w := newWorld(t, nil)
	server := netip.MustParseAddrPort("127.0.0.1:5356")
	w.west.stop()
	w.west.config = map[string]any{"dns": map[string]any{"listen": []string{server.String()}}}
	w.west.start()
	lookUp := func(network string) error {
		r := &net.Resolver{PreferGo: true, Dial: func(ctx context.Context, _, _ string) (net.Conn, error) {
			return (&net.Dialer{}).DialContext(ctx, network, server.String())
		}}
		got, err := r.LookupHost(t.Context(), "serve.default.svc.clusterset.local.")
		if err == nil && len(got) == 0 {
			err = fmt.Errorf("no address over %s", network)
		}
		return err
	}
	testutil.Eventually(t, patience, func() error { return lookUp("udp") })
	before := w.west.rss()
	query := append([]byte{0, 35, 0, 1, 1, 0, 0, 1, 0, 0, 0, 0, 0, 0}, "\x05serve\x07default\x03svc\x0aclusterset\x05local\x00\x00\x01\x00\x01"...)
	binary.BigEndian.PutUint16(query, uint16(len(query)-2))
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	var opened atomic.Int64
	const holders, sources = 1000, 100
	for i := range holders {
		go func() {
			for ctx.Err() == nil {
				conn, err := dial(stranger(i%sources), server)
				if err == nil {
					opened.Add(1)
					keep(ctx, conn, i%3, query)
				}
				time.Sleep(100 * time.Millisecond)
			}
		}()
	}
	testutil.Eventually(t, patience, func() error {
		if n := opened.Load(); n < holders/2 {
			return fmt.Errorf("%d connections", n)
		}
		return nil
	})
	for range 20 {
		for _, network := range []string{"udp", "tcp"} {
			testutil.Eventually(t, patience, func() error { return lookUp(network) })
		}
		time.Sleep(50 * time.Millisecond)
	}
	grown := int64(w.west.rss()-before) >> 20
	t.Logf("RSS grew by %d MiB", grown)
	if grown > 64 {
		t.Errorf("the daemon grew by %d MiB", grown)
	}
}

// keep holds a connection as long as the other side or the test does: silently, with half a query, or with
// queries whose answers it does not read.
func keep(ctx context.Context, conn net.Conn, how int, query []byte) {
	defer conn.Close()
	defer context.AfterFunc(ctx, func() { conn.Close() })()
	switch how {
	case 1:
		_, _ = conn.Write(query[:len(query)/2])
	case 2:
		for range 100 {
			if _, err := conn.Write(query); err != nil {
				return
			}
		}
	}
	_, _ = io.Copy(io.Discard, conn)
}
