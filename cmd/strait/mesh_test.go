package main

import (
	"net/netip"
	"regexp"
	"strings"
	"testing"

	"strait.io/strait/daemon/api"
	"strait.io/strait/internal/key"
)

// meshView is a clusterset whose nodes say how to reach them: one is dead, one cannot be a peer, one
// name is in two clusters, and one tries to break out of a quoted name.
func meshView() *view {
	v := illView()
	for i := range v.Nodes {
		n := &v.Nodes[i]
		n.Peer = &api.Peer{PublicKey: key.Public{byte(i + 1)}, Endpoint: netip.AddrPortFrom(n.Addresses[0], 51820), AllowedIPs: n.Prefixes}
	}
	v.Nodes[3].Peer = &api.Peer{NoTunnel: "the mesh is off on it; set mesh.mode to wireguard there"}
	same := v.Nodes[1]
	same.Cluster, same.Name = "us-west", "us-east-n2"
	same.Peer = &api.Peer{PublicKey: key.Public{9}, Endpoint: addrPort("[2001:db8::9]:51821"), AllowedIPs: []netip.Prefix{
		netip.MustParsePrefix("10.4.0.0/24"), netip.MustParsePrefix("fd00:4::/64")}}
	strange := same
	strange.Name, strange.Peer = "x\"];\nevil\\", &api.Peer{NoTunnel: "it has no prefix of pods"}
	v.Nodes = append(v.Nodes, same, strange)
	return v
}

// TestMeshSaysTheSame: a graph and a configuration depend on the mesh alone, not on the time, counters
// or the order in which the daemon lists what it knows.
func TestMeshSaysTheSame(t *testing.T) {
	v := meshView()
	socket, src := startServer(t, v)
	later := meshView()
	later.Status.Time = now
	for i := range later.Nodes {
		later.Nodes[i].Heard, later.Nodes[i].Stamp = now, "1763649999/99"
		if tunnel := later.Nodes[i].Tunnel; tunnel != nil {
			tunnel.Sent++
			if !tunnel.Handshake.IsZero() {
				tunnel.Handshake = now
			}
		}
	}
	later.Nodes[0], later.Nodes[5] = later.Nodes[5], later.Nodes[0]
	for _, args := range []string{"graph", "graph -o dot", "graph -o mermaid", "peer showconf node us-east-n1",
		"peer showconf node us-east-n1 --as-peer -o yaml --allowed-ips 10.96.0.0/16"} {
		src.view.Store(v)
		first := world(strings.Fields(args)...).on(socket).run(t)
		src.view.Store(later)
		second := world(strings.Fields(args)...).on(socket).run(t)
		if first.code != 0 || first.stdout == "" || first.stdout != second.stdout {
			t.Errorf("strait %s: exit codes %d and %d, first\n%s\nthen\n%s%s", args, first.code, second.code, first.stdout, second.stdout, second.stderr)
		}
	}
}

// TestDotEdges: the links of the picture are the tunnels between nodes of different clusters that can
// be peers, each once.
func TestDotEdges(t *testing.T) {
	socket, _ := startServer(t, meshView())
	got := world("graph", "-o", "dot").on(socket).run(t).stdout
	edges := regexp.MustCompile(`(?m)^  "(\S+)" -- "(\S+)"`).FindAllStringSubmatch(got, -1)
	seen := map[string]bool{}
	for _, e := range edges {
		seen[e[1]+" "+e[2]] = true
	}
	// eu-central has one node that can be a peer, us-east two, us-west two.
	if want := 1*2 + 1*2 + 2*2; len(edges) != want || len(seen) != want || strings.Contains(got, "eu-central-n2\" --") {
		t.Errorf("%d edges, %d different, want %d:\n%s", len(edges), len(seen), want, got)
	}
	if strings.Contains(got, "\nevil") {
		t.Errorf("a name broke out of its quotes:\n%s", got)
	}
}
