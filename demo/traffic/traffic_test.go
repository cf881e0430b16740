package traffic_test

import (
	"context"
	"io"
	"net"
	"net/netip"
	"strings"
	"testing"
	"time"

	"strait.io/strait/demo/traffic"
)

func TestParseHello(t *testing.T) {
	h := traffic.Hello{Cluster: "us-east", Node: "us-east-1", Pod: "serve-1", Address: netip.MustParseAddr("10.1.1.10")}
	want := "hello from cluster us-east (Node: us-east-1 Pod: serve-1 Address: 10.1.1.10)\n"
	if h.String() != want {
		t.Errorf("String = %q, want %q", h, want)
	}
	got, err := traffic.ParseHello(want)
	if err != nil || got != h {
		t.Errorf("ParseHello = %+v, %v; want %+v", got, err, h)
	}
	for _, bad := range []string{"", "hello", want + want, strings.TrimSpace(want), strings.Replace(want, "10.1.1.10", "10.1.1", 1)} {
		if got, err := traffic.ParseHello(bad); err == nil {
			t.Errorf("ParseHello(%q) = %+v, want an error", bad, got)
		}
	}
}

func FuzzParseHello(f *testing.F) {
	f.Add("hello from cluster us-east (Node: us-east-1 Pod: serve-1 Address: 10.1.1.10)\n")
	f.Add("hello from cluster a (Node: b Pod: c Address: ::ffff:1.2.3.4)\n")
	f.Fuzz(func(t *testing.T, text string) {
		h, err := traffic.ParseHello(text)
		if err != nil {
			return
		}
		if again, err := traffic.ParseHello(h.String()); err != nil || again != h {
			t.Errorf("ParseHello(%q) = %+v; its text parses to %+v, %v", text, h, again, err)
		}
	})
}

// serve runs a real server on a loopback address of its own until the test ends.
func serve(t *testing.T, addr string) traffic.Hello {
	t.Helper()
	h := traffic.Hello{Cluster: "us-east", Node: "us-east-1", Pod: "serve-1", Address: netip.MustParseAddr(addr)}
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan error, 1)
	go func() { done <- traffic.Serve(ctx, h) }()
	t.Cleanup(func() {
		cancel()
		if err := <-done; err != nil {
			t.Errorf("Serve = %v", err)
		}
	})
	for range 100 {
		conn, err := net.Dial("tcp", netip.AddrPortFrom(h.Address, traffic.HTTPPort).String())
		if err == nil {
			conn.Close()
			return h
		}
		time.Sleep(10 * time.Millisecond)
	}
	t.Fatal("the server does not listen after 1s")
	return h
}

func TestDo(t *testing.T) {
	h := serve(t, "127.0.83.1")
	mute, err := net.Listen("tcp", "127.0.83.2:0") // accepts, sends nothing
	if err != nil {
		t.Fatal(err)
	}
	defer mute.Close()
	for _, c := range []struct{ name, target, err string }{
		{"http", "http://127.0.83.1:8080/", ""},
		{"udp", "udp://127.0.83.1:5353", ""},
		{"not found is no matter", "http://127.0.83.1:8080/x", ""},
		{"refused", "http://127.0.83.3:8080/", "connection refused"},
		{"udp refused", "udp://127.0.83.3:5353", "connection refused"},
		{"time-out", "http://" + mute.Addr().String() + "/", "deadline exceeded"},
		{"scheme", "ftp://127.0.83.1:21/", "want http:// or udp://"},
		{"no port", "udp://127.0.83.1", "port"},
	} {
		t.Run(c.name, func(t *testing.T) {
			got := traffic.Do(context.Background(), c.target)
			if c.err == "" && (!got.OK() || got.Hello != h || got.Micros <= 0) {
				t.Errorf("Do = %+v, want hello of %+v", got, h)
			}
			if c.err != "" && !strings.Contains(got.Err, c.err) {
				t.Errorf("Do: error %q, want %q", got.Err, c.err)
			}
			if limit := traffic.Timeout + 500*time.Millisecond; got.End().Sub(got.At) > limit {
				t.Errorf("Do took %v, want at most %v", got.End().Sub(got.At), limit)
			}
		})
	}
}

// pair joins a driver to a client that runs in this process.
func pair(t *testing.T) (d *traffic.Driver, hangUp func()) {
	t.Helper()
	orders, in := io.Pipe()
	out, reports := io.Pipe()
	d = traffic.NewDriver("test", in)
	done := make(chan error, 2)
	go func() {
		err := traffic.RunClient(context.Background(), orders, reports)
		reports.Close()
		done <- err
	}()
	go func() { done <- d.Collect(out) }()
	return d, func() {
		in.Close()
		for range 2 {
			if err := <-done; err != nil {
				t.Errorf("client or collector: %v", err)
			}
		}
	}
}

func TestDriver(t *testing.T) {
	serve(t, "127.0.83.4")
	d, hangUp := pair(t)
	ctx := context.Background()
	counted, err := d.Start(traffic.Order{Target: "http://127.0.83.4:8080/", Calls: 7, EveryMS: 1})
	if err != nil {
		t.Fatal(err)
	}
	endless, err := d.Start(traffic.Order{Target: "udp://127.0.83.4:5353", EveryMS: 5})
	if err != nil {
		t.Fatal(err)
	}
	if err := counted.Wait(ctx); err != nil || len(counted.Calls()) != 7 {
		t.Errorf("counted run: %v and %d calls, want 7", err, len(counted.Calls()))
	}
	for len(endless.Calls()) < 3 {
		time.Sleep(time.Millisecond)
	}
	if err := endless.Stop(ctx); err != nil {
		t.Errorf("Stop = %v", err)
	}
	n := len(endless.Calls())
	time.Sleep(30 * time.Millisecond)
	if got := len(endless.Calls()); got != n {
		t.Errorf("%d calls after Stop returned, want %d", got, n)
	}
	for _, c := range append(counted.Calls(), endless.Calls()...) {
		if !c.OK() || c.Pod != "serve-1" {
			t.Errorf("call = %+v, want an answer of serve-1", c)
		}
	}
	hangUp()
	if _, err := d.Start(traffic.Order{Target: "udp://127.0.83.4:5353", Calls: 1}); err == nil {
		t.Error("Start on a client that is gone: no error")
	}
}

// A client that dies ends its runs with an error; they do not hang.
func TestDriverLoses(t *testing.T) {
	_, in := io.Pipe()
	out, reports := io.Pipe()
	d := traffic.NewDriver("test", io.Discard)
	go func() { _ = d.Collect(out) }()
	run, err := d.Start(traffic.Order{Target: "http://127.0.83.9/", EveryMS: 5})
	if err != nil {
		t.Fatal(err)
	}
	in.Close()
	reports.Close()
	if err := run.Wait(context.Background()); err == nil {
		t.Error("Wait on a client that died: no error")
	}
}
