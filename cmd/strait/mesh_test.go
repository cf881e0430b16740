package main

import (
	"encoding/json"
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
	v.Tunnels = tunnelsBetween(v.Nodes, func(a, b *api.Node) bool { return a.Cluster != b.Cluster })
	return v
}

// tunnelsBetween returns the tunnels between the nodes that can be peers and that a topology joins.
func tunnelsBetween(nodes []api.Node, joins func(a, b *api.Node) bool) (out []api.NodeTunnels) {
	for i := range nodes {
		a := &nodes[i]
		t := api.NodeTunnels{Node: a.Cluster + "/" + a.Name}
		for j := range nodes {
			if b := &nodes[j]; i != j && a.Peer.NoTunnel == "" && b.Peer.NoTunnel == "" && joins(a, b) {
				t.Tunnels = append(t.Tunnels, api.TunnelTo{Node: b.Cluster + "/" + b.Name})
			}
		}
		out = append(out, t)
	}
	return out
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
	for _, args := range []string{"graph", "graph -o dot", "graph -o mermaid", "graph -o json", "peer showconf node us-east-n1",
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

// links returns the links of a mesh in JSON, a line each.
func links(t *testing.T, text string) string {
	t.Helper()
	var mesh struct{ Links []struct{ A, B string } }
	if err := json.Unmarshal([]byte(text), &mesh); err != nil {
		t.Fatal(err)
	}
	var lines []string
	for _, l := range mesh.Links {
		lines = append(lines, l.A+" -- "+l.B)
	}
	return strings.Join(lines, "\n")
}

// TestGateways: graph and configuration show the tunnels that the daemon's mesh has, whatever the
// topology: here each cluster has a gateway, through which its other nodes are reached.
func TestGateways(t *testing.T) {
	gateways := map[string]string{"us-east": "us-east-n1", "eu-central": "eu-central-n1", "us-west": "us-east-n2"}
	is := func(n *api.Node) bool { return gateways[n.Cluster] == n.Name }
	v := meshView()
	v.Tunnels = tunnelsBetween(v.Nodes, func(a, b *api.Node) bool {
		return is(a) && is(b) || a.Cluster == b.Cluster && (is(a) || is(b))
	})
	for i := range v.Tunnels {
		for j := range v.Tunnels[i].Tunnels {
			if to := &v.Tunnels[i].Tunnels[j]; to.Node == "us-west/us-east-n2" && v.Tunnels[i].Node != "us-west/us-west-n1" {
				to.Reached = []string{"us-west/us-east-n2", "us-west/us-west-n1"}
			}
		}
	}
	socket, _ := startServer(t, v)
	dot := world("graph", "-o", "dot").on(socket).run(t).stdout
	var edges []string
	for _, e := range regexp.MustCompile(`(?m)^  ("\S+" -- "\S+")`).FindAllStringSubmatch(dot, -1) {
		edges = append(edges, strings.ReplaceAll(e[1], `"`, ""))
	}
	if got, want := strings.Join(edges, "\n"), `eu-central/eu-central-n1 -- us-east/us-east-n1
eu-central/eu-central-n1 -- us-west/us-east-n2
us-east/us-east-n1 -- us-east/us-east-n2
us-east/us-east-n1 -- us-west/us-east-n2
us-west/us-east-n2 -- us-west/us-west-n1`; got != want {
		t.Errorf("the tunnels of the graph:\n%s\nwant\n%s", got, want)
	}
	if got := world("graph", "-o", "json").on(socket).run(t); links(t, got.stdout) != strings.Join(edges, "\n") {
		t.Errorf("the tunnels as JSON are others:\n%s", got.stdout)
	}
	conf := world("peer", "showconf", "node", "us-east-n1").on(socket).run(t).stdout
	var peers []string
	for _, p := range regexp.MustCompile(`(?s)# (\S+)\n\[Peer\]\n.*?\nAllowedIPs = ([^\n]*)`).FindAllStringSubmatch(conf, -1) {
		peers = append(peers, p[1]+" "+p[2])
	}
	if got, want := strings.Join(peers, "\n"), `eu-central/eu-central-n1 10.3.0.0/24
us-east/us-east-n2 10.1.1.0/24
us-west/us-east-n2 10.3.1.0/24, 10.4.0.0/24, fd00:4::/64`; got != want {
		t.Errorf("the peers of us-east-n1:\n%s\nwant\n%s", got, want)
	}
}
