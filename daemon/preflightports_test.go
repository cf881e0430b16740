package daemon

import (
	"context"
	"net"
	"net/netip"
	"strconv"
	"strings"
	"testing"

	"strait.io/strait/daemon/api"
)

// freePort returns a port of the loopback address that was free a moment ago.
func freePort(t *testing.T) uint16 {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	return l.Addr().(*net.TCPAddr).AddrPort().Port()
}

// TestPreflightPorts: machines that serve answer at each of their ports. A closed port, another program
// and a strange text have an error each.
func TestPreflightPorts(t *testing.T) {
	loopback := netip.MustParseAddr("127.0.0.1")
	var c Config
	c.setDefaults()
	c.Gossip.Bind, c.Mesh.Port = netip.AddrPortFrom(loopback, freePort(t)), freePort(t)
	other, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer other.Close()
	go func() {
		for {
			conn, err := other.Accept()
			if err != nil {
				return
			}
			_, _ = conn.Write([]byte(strings.Repeat("SSH-2.0 hello ", 5)))
			conn.Close()
		}
	}()
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() { ended <- PreflightServe(ctx, c) }()
	port := func(n uint16, network string) string { return strconv.Itoa(int(n)) + "/" + network }
	probe := api.PortProbe{Node: "n1", Addr: loopback, Ports: []string{
		port(c.Gossip.Bind.Port(), "TCP"), port(c.Gossip.Bind.Port(), "UDP"), port(c.Mesh.Port, "UDP"),
		port(freePort(t), "TCP"), port(other.Addr().(*net.TCPAddr).AddrPort().Port(), "TCP"), "many"}}
	got := dialAll(ctx, []api.PortProbe{probe})
	for i, want := range []string{"", "", "", "connection refused", "another program answered there", "want a number"} {
		r := got[i]
		if r.Port != probe.Ports[i] || r.Node != "n1" || want == "" && (r.Error != "" || r.RTT <= 0 || r.Ahead < -1 || r.Ahead > 1) || !strings.Contains(r.Error, want) {
			t.Errorf("%+v, want %q", r, want)
		}
	}
	cancel()
	if err := <-ended; err != nil {
		t.Error(err)
	}
	got, err = PreflightDial(t.Context(), strings.NewReader(`[{"node":"n1","addr":"127.0.0.1","ports":["`+probe.Ports[0]+`"]}]`))
	if err != nil || len(got) != 1 || got[0].Error == "" {
		t.Errorf("after the end: %+v, %v", got, err)
	}
	if _, err := PreflightDial(t.Context(), strings.NewReader("{")); err == nil {
		t.Error("half of the probes is taken")
	}
}
