package daemon

import (
	"net"
	"net/netip"
	"slices"
	"strconv"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"strait.io/strait/daemon/api"
)

// TestPingTarget: a text names a node, a service or a pod that the clusterset has, and nothing else can
// be pinged.
func TestPingTarget(t *testing.T) {
	v := twoClusters()
	services := v.services()
	services[0].Frontends[0].Endpoints[0].Pod = "serve-1"
	node := v.state.Records.Get(v.state.Origins()[len(v.state.Origins())-1]).Content.Node
	node.GossipPort, node.WireGuardPort = 7946, 51820
	for text, want := range map[string]string{
		"b/n1":               "node b/n1 gossip 192.0.2.1:7946 of b/n1:51820",
		"default/serve":      "service default/serve frontend 241.1.2.3:80 endpoint 10.2.1.10:8080",
		"default/serve:http": "service default/serve frontend 241.1.2.3:80 endpoint 10.2.1.10:8080",
		"default/serve:80":   "service default/serve frontend 241.1.2.3:80 endpoint 10.2.1.10:8080",
		"default/serve:443":  "!has no port 443",
		"10.2.1.10":          "pod 10.2.1.10 gossip 192.0.2.1:7946 of b/n1:51820 pod 10.2.1.10:8080",
		"10.2.1.77":          "pod 10.2.1.77 gossip 192.0.2.1:7946 of b/n1:51820", // in the node's range: no port is known
		"a/n1":               "!is on the node that is asked",
		"n1":                 "!is on the node that is asked",
		"203.0.113.1":        "!there is no node, service or pod 203.0.113.1",
		"203.0.113.1:22":     "!no cluster exports a service",
		"localhost":          "!there is no node",
		"default/none":       "!there is no node",
		"b/":                 "!there is no node",
		"":                   "!names nothing",
		"a/b/c/d":            "!there is no node",
		"::1":                "!there is no node",
	} {
		target, err := v.pingTarget(text, services)
		got := target.kind + " " + target.name
		if err != nil {
			got = "!" + err.Error()
		}
		if target.gossip.IsValid() {
			got += " gossip " + target.gossip.String() + " of " + target.node() + ":" + strconv.Itoa(int(target.tunnelPort))
		}
		for i, w := range target.ways {
			got += " " + w.Way + " " + target.addrs[i].String()
		}
		if got != want && !(strings.HasPrefix(want, "!") && strings.HasPrefix(got, "!") && strings.Contains(got, want[1:])) {
			t.Errorf("%q is %q, want %q", text, got, want)
		}
	}
}

// TestPingTargetBounds: a service with many endpoints leads to a bounded number of addresses.
func TestPingTargetBounds(t *testing.T) {
	v := twoClusters()
	s := v.services()[0]
	for i := range 100 {
		e := s.Frontends[0].Endpoints[0]
		e.Addr = netip.AddrPortFrom(netip.AddrFrom4([4]byte{10, 2, 1, byte(i + 20)}), 8080)
		s.Frontends[0].Endpoints = append(s.Frontends[0].Endpoints, e)
	}
	s.Frontends = slices.Repeat(s.Frontends, 20)
	target, err := serviceTarget(s, "")
	if err != nil || len(target.addrs) != maxPingWays || len(target.ways) != maxPingWays {
		t.Errorf("%d addresses: %v", len(target.addrs), err)
	}
}

// TestPings: no more pings than there are places start in any pingRest.
func TestPings(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p, entered := newPings(), 0
		for range 10 * maxPings {
			if p.enter() {
				entered++
			}
		}
		if entered != maxPings {
			t.Errorf("%d at once", entered)
		}
		time.Sleep(pingRest)
		synctest.Wait()
		if !p.enter() {
			t.Error("no place is free after the rest")
		}
		time.Sleep(pingRest)
	})
}

// TestConnects: connections that are accepted are counted with their round-trip time, and those that are
// refused with the reason.
func TestConnects(t *testing.T) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	at := l.Addr().(*net.TCPAddr).AddrPort()
	w := connects(t.Context(), api.Way{Way: api.WayGossip}, at, 2)
	if !w.Works() || w.Sent != 2 || w.RTT <= 0 || w.To != at.String() || w.Error != "" {
		t.Errorf("accepted: %+v", w)
	}
	l.Close()
	if w = connects(t.Context(), api.Way{}, at, 2); !w.Dead() || w.Error != "connection refused" {
		t.Errorf("refused: %+v", w)
	}
	if w = connects(t.Context(), api.Way{}, netip.AddrPort{}, 2); w.Sent != 0 || w.Skipped == "" {
		t.Errorf("no address: %+v", w)
	}
}
