package daemon

import (
	"errors"
	"fmt"
	"log/slog"
	"net/netip"
	"slices"
	"strings"
	"testing"
	"time"

	"strait.io/strait/clustermesh"
	"strait.io/strait/daemon/api"
	"strait.io/strait/daemon/plan"
	"strait.io/strait/datapath"
	"strait.io/strait/datapath/wireguard"
	"strait.io/strait/internal/key"
	"strait.io/strait/internal/l4"
)

// twoClusters is a moment on a/n1: b has one node, which is held, and one pod.
func twoClusters() viewer {
	serve := clustermesh.ServiceName{Namespace: "default", Name: "serve"}
	port := clustermesh.ServicePort{Name: "http", Proto: l4.TCP, Port: 80}
	ip := netip.MustParseAddr("241.1.2.3")
	record := func(cluster, node string, c clustermesh.Content) (clustermesh.Origin, clustermesh.Record) {
		o := clustermesh.Origin{Cluster: clustermesh.ClusterName(cluster), Node: clustermesh.NodeName(node)}
		return o, clustermesh.Record{Origin: o, Stamp: clustermesh.Stamp{Epoch: 7, Version: 1}, Content: c}
	}
	s := clustermesh.State{Records: map[clustermesh.Origin]clustermesh.Record{}, Contacts: map[clustermesh.Origin]clustermesh.Contact{}}
	add := func(cluster, node string, c clustermesh.Content) {
		o, r := record(cluster, node, c)
		s.Records[o] = r
	}
	add("a", "", clustermesh.Content{Allocations: []clustermesh.Allocation{{Service: serve, IP: ip}}})
	add("a", "n1", clustermesh.Content{Node: &clustermesh.Node{Name: "n1"}})
	add("b", "", clustermesh.Content{Exports: []clustermesh.Export{{Service: serve, Type: clustermesh.ClusterSetIP, Ports: []clustermesh.ServicePort{port}}}})
	add("b", "n1", clustermesh.Content{
		Node: &clustermesh.Node{Name: "n1", PublicKey: key.Public{9}, Addresses: []netip.Addr{netip.MustParseAddr("192.0.2.1")},
			Prefixes: []netip.Prefix{netip.MustParsePrefix("10.2.1.0/24")}},
		Endpoints: []clustermesh.Endpoint{{Service: serve, Addr: netip.MustParseAddr("10.2.1.10"), Node: "n1", Ready: true,
			Ports: []clustermesh.EndpointPort{{Name: "http", Proto: l4.TCP, Port: 8080}}}},
	})
	self := plan.Self{Cluster: "a", Node: "n1"}
	result := plan.Plan(s, self, plan.Config{CIDRs: []netip.Prefix{netip.MustParsePrefix("241.0.0.0/8")}, Mesh: true})
	return viewer{moment: &moment{state: s, result: result}, self: self,
		heard: map[clustermesh.Origin]time.Time{{Cluster: "b", Node: "n1"}: time.Unix(100, 0)},
		held: held{frontends: slices.Clone(result.Desired.Frontends),
			peers: []wireguard.PeerStatus{{Key: key.Public{9}, Handshake: time.Unix(90, 0), Sent: 1, Received: 2}}}}
}

func TestViewClusters(t *testing.T) {
	v := twoClusters()
	got := v.clusters()
	if len(got) != 2 || got[0].State != "here" || got[0].Alive != 1 || got[1].State != "held" || got[1].Alive != 0 ||
		got[1].Exports != 1 || got[1].Endpoints != 1 || !got[1].Heard.Equal(time.Unix(100, 0)) {
		t.Errorf("clusters %+v", got)
	}
	v.state.Contacts[clustermesh.Origin{Cluster: "b", Node: "n1"}] = clustermesh.Quiet
	if got := v.clusters(); got[1].State != "joined" {
		t.Errorf("a cluster whose machine answers is %q", got[1].State)
	}
}

func TestViewServices(t *testing.T) {
	v := twoClusters()
	got := v.services()
	if len(got) != 1 || got[0].Name != "default/serve" || len(got[0].Frontends) != 1 {
		t.Fatalf("services %+v", got)
	}
	f := got[0].Frontends[0]
	if got := withGlobal(v).services(); len(got) != 2 || got[1].Type != "Global" || !slices.Equal(got[1].Exporters, []string{"b"}) || !got[1].Frontends[0].InKernel {
		t.Errorf("with a global service: %+v", got)
	}
	if !f.InKernel || f.Tier != "clusterset" || len(f.Endpoints) != 1 || f.Endpoints[0].Share != 1 || f.Endpoints[0].Reason == "" {
		t.Errorf("frontend %+v", f)
	}
	v.held.frontends = []datapath.Frontend{{Addr: f.Addr}}
	if v.services()[0].Frontends[0].InKernel {
		t.Error("a map without the backend counts as equal to the plan")
	}
}

// withGlobal makes the service a global one of both clusters besides.
func withGlobal(v viewer) viewer {
	serve := v.result.Imports[0].Service
	ports := v.result.Imports[0].Ports
	for o, ip := range map[clustermesh.Origin]string{{Cluster: "a"}: "10.96.0.7", {Cluster: "b"}: "10.97.0.7"} {
		r := v.state.Records[o]
		r.Content.Globals = []clustermesh.Global{{Service: serve, Ports: ports, IPs: []netip.Addr{netip.MustParseAddr(ip)}, Shared: true}}
		v.state.Records[o] = r
	}
	m := moment{state: v.state, result: plan.Plan(v.state, v.self, plan.Config{Mesh: true})}
	v.moment, v.held.frontends = &m, m.result.Desired.Frontends
	return v
}

func TestViewNodes(t *testing.T) {
	got := twoClusters().nodes()
	if len(got) != 2 || got[0].Contact != "self" || got[0].Tunnel != nil || got[1].Contact != "held" || got[1].Tunnel == nil {
		t.Fatalf("nodes %+v", got)
	}
	if tun := got[1].Tunnel; !tun.Handshake.Equal(time.Unix(90, 0)) || tun.Received != 2 {
		t.Errorf("tunnel %+v", tun)
	}
}

// A mesh that is wanted and has no device is not off: who reads that looks for a setting.
func TestMeshWithoutDevice(t *testing.T) {
	for mode, want := range map[MeshMode]string{MeshWireGuard: "down", MeshOff: "off"} {
		k, err := newKernel(Config{StateDir: t.TempDir(), Mesh: MeshConfig{Mode: mode}}, slog.New(slog.DiscardHandler), api.NewMetrics())
		if err != nil {
			t.Fatal(err)
		}
		if got := k.inspect().datapath.Mesh; got != want {
			t.Errorf("mode %s: mesh %s, want %s", mode, got, want)
		}
	}
}

// Who asked for the kernel's WireGuard is told which setting that was; nobody else is.
func TestMeshExplained(t *testing.T) {
	none := fmt.Errorf("%w: the kernel has no WireGuard: load its module", errors.ErrUnsupported)
	for _, c := range []struct {
		implementation wireguard.Kind
		err            error
		want           bool
	}{{"kernel", none, true}, {"auto", none, false}, {"kernel", errors.New("no space"), false}} {
		got := MeshConfig{Implementation: c.implementation}.explain(c.err)
		if told := strings.HasSuffix(got.Error(), ", or set mesh.implementation to userspace"); told != c.want || !errors.Is(got, c.err) {
			t.Errorf("%s, %v: %v", c.implementation, c.err, got)
		}
	}
}
