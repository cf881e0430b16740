package daemon

import (
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"net/netip"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"strait.io/strait/clustermesh"
	"strait.io/strait/clustermesh/topology"
	"strait.io/strait/daemon/api"
	"strait.io/strait/daemon/api/table"
	"strait.io/strait/daemon/metrics"
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
	s := clustermesh.State{Records: clustermesh.ByOrigin[clustermesh.Record]{}, Contacts: clustermesh.ByOrigin[clustermesh.Contact]{}}
	add := func(cluster, node string, c clustermesh.Content) {
		o, r := record(cluster, node, c)
		s.Records = s.Records.With(o, r)
	}
	add("a", "", clustermesh.Content{Allocations: []clustermesh.Allocation{{Service: serve, IP: ip}}})
	add("a", "n1", clustermesh.Content{Node: &clustermesh.Node{Name: "n1"}})
	add("b", "", clustermesh.Content{Exports: []clustermesh.Export{{Service: serve, Type: clustermesh.ClusterSetIP, Ports: []clustermesh.ServicePort{port}}}})
	entered := netip.MustParsePrefix("10.202.0.0/16")
	add("b", "n1", clustermesh.Content{
		Node: &clustermesh.Node{Name: "n1", PublicKey: key.Public{9}, Addresses: []netip.Addr{netip.MustParseAddr("192.0.2.1")},
			Prefixes: []netip.Prefix{netip.MustParsePrefix("10.2.1.0/24"), entered}, ClusterIPs: []netip.Prefix{entered}},
		Endpoints: []clustermesh.Endpoint{{Service: serve, Addr: netip.MustParseAddr("10.2.1.10"), Node: "n1", Ready: true,
			Ports: []clustermesh.EndpointPort{{Name: "http", Proto: l4.TCP, Port: 8080}}}},
	})
	self := plan.Self{Cluster: "a", Node: "n1"}
	result, _ := plan.Plan(plan.Inputs{State: s, Self: self, Config: plan.Config{CIDRs: []netip.Prefix{netip.MustParsePrefix("241.0.0.0/8")}, Mesh: true}}, plan.Past{})
	return viewer{moment: &moment{state: s, result: result}, self: self,
		heard:   map[clustermesh.Origin]time.Time{{Cluster: "b", Node: "n1"}: time.Unix(100, 0)},
		counted: counted{frontends: slices.Clone(result.Desired.Frontends)},
		peers:   map[key.Public]wireguard.PeerStatus{{9}: {Key: key.Public{9}, Handshake: time.Unix(90, 0), Sent: 1, Received: 2}}}
}

func TestViewClusters(t *testing.T) {
	got := twoClusters().clusters()
	if len(got) != 2 || got[0].State != api.Here || got[0].Alive != 1 || got[1].State != api.Held || got[1].Alive != 0 ||
		got[1].Exports != 1 || got[1].Endpoints != 1 || !got[1].Heard.Equal(time.Unix(100, 0)) {
		t.Errorf("clusters %+v", got)
	}
}

// TestViewConfig: the configuration in another cluster's record is counted, by whether this cluster
// accepts it.
func TestViewConfig(t *testing.T) {
	v := twoClusters()
	for c, unasked := range map[clustermesh.ClusterName]int{"a": 0, "b": 3} {
		r := v.state.Records.Get(clustermesh.Origin{Cluster: c})
		r.Content.Config, r.Unasked = make([]clustermesh.ConfigObject, 2), unasked
		v.state.Records = v.state.Records.With(clustermesh.Origin{Cluster: c}, r)
	}
	if got := v.clusters(); got[0].Config != 0 || got[0].ConfigLeftOut != 0 || got[1].Config != 2 || got[1].ConfigLeftOut != 3 {
		t.Errorf("clusters %+v", got)
	}
}

// TestEndpointsByFamily: a pod of both families is two endpoints.
func TestEndpointsByFamily(t *testing.T) {
	v := twoClusters()
	n1 := clustermesh.Origin{Cluster: "b", Node: "n1"}
	r := v.state.Records.Get(n1)
	six := r.Content.Endpoints[0]
	six.Addr = netip.MustParseAddr("fd00:2::10")
	r.Content.Endpoints = append(slices.Clip(r.Content.Endpoints), six)
	v.state.Records = v.state.Records.With(n1, r)
	if got := v.clusters()[1]; got.Endpoints != 2 || got.EndpointsIPv6 != 1 || table.Clusters.Rows([]api.Cluster{got}, time.Time{}, table.Form{})[0][5] != "1 IPv4 · 1 IPv6" {
		t.Errorf("%+v", got)
	}
}

// TestClusterStates: a cluster is joined as long as one of its daemons is heard, and not because a
// machine answers.
func TestClusterStates(t *testing.T) {
	const silent, held, quiet, alive = clustermesh.Silent, clustermesh.Held, clustermesh.Quiet, clustermesh.Alive
	for _, c := range []struct {
		n1, n2 clustermesh.Contact
		want   api.ClusterState
		alive  int
	}{
		{alive, alive, api.Joined, 2}, {alive, silent, api.Joined, 1}, {quiet, alive, api.Joined, 1},
		{quiet, quiet, api.Quiet, 0}, {quiet, silent, api.Quiet, 0}, {held, quiet, api.Quiet, 0},
		{silent, silent, api.Held, 0}, {held, held, api.Held, 0}, {silent, held, api.Held, 0},
	} {
		v := twoClusters()
		n1, n2 := clustermesh.Origin{Cluster: "b", Node: "n1"}, clustermesh.Origin{Cluster: "b", Node: "n2"}
		r := v.state.Records.Get(n1)
		r.Origin = n2
		v.state.Records = v.state.Records.With(n2, r)
		v.state.Contacts = v.state.Contacts.With(n1, c.n1)
		v.state.Contacts = v.state.Contacts.With(n2, c.n2)
		if got := v.clusters()[1]; got.State != c.want || got.Alive != c.alive || got.Nodes != 2 {
			t.Errorf("nodes %v and %v: %q, %d/%d heard; want %q, %d/2", c.n1, c.n2, got.State, got.Alive, got.Nodes, c.want, c.alive)
		}
	}
}

// TestMembers: each node counts once, and nodes that are called silent only if they are dead by
// that.
func TestMembers(t *testing.T) {
	v := twoClusters()
	node := func(i int) clustermesh.Origin {
		return clustermesh.Origin{Cluster: "b", Node: clustermesh.NodeName(fmt.Sprintf("n%d", i))}
	}
	for i, contact := range []clustermesh.Contact{clustermesh.Alive, clustermesh.Quiet, clustermesh.Silent, clustermesh.Silent, clustermesh.Held} {
		r := v.state.Records.Get(node(1))
		r.Origin, r.Content.Silent = node(i+1), nil
		if i < 2 || i == 4 { // three of four others say so of n3, one of n4
			r.Content.Silent = append(r.Content.Silent, clustermesh.Silence{Origin: node(3), Epoch: 7})
		}
		if i == 0 {
			r.Content.Silent = append(r.Content.Silent, clustermesh.Silence{Origin: node(4), Epoch: 7})
		}
		v.state.Records = v.state.Records.With(r.Origin, r)
		v.state.Contacts = v.state.Contacts.With(r.Origin, contact)
	}
	want := map[string]int{"alive": 2, "quiet": 1, "silent": 1, "held": 1, "dead": 1}
	if got := v.members(); !maps.Equal(got, want) {
		t.Errorf("members %v, want %v", got, want)
	}
	for _, n := range v.nodes() {
		if n.Dead != (n.Name == "n3") || (len(n.Witnesses) > 0) != (n.Name == "n3" || n.Name == "n4") {
			t.Errorf("%+v", n)
		}
	}
}

// TestViewTraffic: every frontend with all its endpoints, used or not.
func TestViewTraffic(t *testing.T) {
	v := twoClusters()
	f := v.result.Imports[0].Frontends()[0]
	pod := f.Choice.Verdicts[0].Addr
	v.counted.services = map[l4.Addr]frontendCounts{f.Addr: {connects: 3, refused: 2}}
	v.counted.backends = map[flow]uint64{{f.Addr, pod}: 3}
	var got []api.Traffic
	v.traffic(func(x api.Traffic) {
		x.Backends = slices.Clone(x.Backends)
		got = append(got, x)
	})
	want := []api.Traffic{{Service: "default/serve", Frontend: f.Addr, Connects: 3, Refused: 2,
		Backends: []api.BackendTraffic{{Addr: pod, Cluster: "b", Connects: 3}}}}
	if !reflect.DeepEqual(got, want) {
		t.Errorf("got %+v, want %+v", got, want)
	}
}

// TestViewRoundTripTimes: an endpoint has the time of its own node.
func TestViewRoundTripTimes(t *testing.T) {
	v := twoClusters()
	if got := v.services()[0].Frontends[0].Endpoints[0].RTT; got != 0 {
		t.Errorf("unknown: %v", got)
	}
	v.rtts = map[clustermesh.Origin]time.Duration{{Cluster: "b", Node: "n1"}: 82150 * time.Microsecond, {Cluster: "a", Node: "n1"}: time.Second}
	if got := v.services()[0].Frontends[0].Endpoints[0].RTT; got != 82.15 {
		t.Errorf("%v ms", got)
	}
}

// TestViewPolicies: a service names the policies that share it, and a policy what comes by it.
func TestViewPolicies(t *testing.T) {
	v := twoClusters()
	b := clustermesh.Origin{Cluster: "b"}
	r := v.state.Records.Get(b)
	r.Content.Exports = slices.Clone(r.Content.Exports)
	r.Content.Exports[0].Policy = "shop"
	v.state.Records = v.state.Records.With(b, r)
	if got := v.services()[0].Policies; !slices.Equal(got, []string{"shop of b"}) {
		t.Errorf("policies of the service: %q", got)
	}
	shares := []clustermesh.Share{{Policy: "shop", As: "import", From: []clustermesh.ClusterName{"b"}}}
	if got := policies(shares, v.state, "a", true); len(got) != 1 || !slices.Equal(got[0].Others, []string{"default/serve of b"}) {
		t.Errorf("policies: %+v", got)
	}
	r.Content.Exports[0].To = []clustermesh.ClusterName{"c"}
	if got := policies(shares, v.state, "a", true); len(got[0].Others) > 0 {
		t.Errorf("what is for others: %+v", got)
	}
}

// TestViewPolicyResults: a policy shows what leaders have made by it and left out, here and
// elsewhere.
func TestViewPolicyResults(t *testing.T) {
	v := twoClusters()
	for c, n := range map[clustermesh.ClusterName]int{"a": 4, "b": 2} {
		o := clustermesh.Origin{Cluster: c}
		r := v.state.Records.Get(o)
		made := clustermesh.PolicyResult{Policy: "shop", Mirrored: n, SkippedMore: n}
		made.Skip("x/shop/cart", "TargetExists", "of "+string(c))
		r.Content.Results = []clustermesh.PolicyResult{{Policy: "other", Mirrored: 9}, made}
		v.state.Records = v.state.Records.With(o, r)
	}
	shares := []clustermesh.Share{{Policy: "shop", As: "mirror", SkippedMore: 1, Skipped: []clustermesh.SkippedService{
		{Service: clustermesh.ServiceName{Namespace: "shop", Name: "old"}, Reason: "ExternalName"},
	}}}
	got := policies(shares, v.state, "a", true)[0]
	here := []api.SkippedService{{Service: "shop/old", Reason: "ExternalName"}, {Service: "x/shop/cart", Reason: "TargetExists", Message: "of a"}}
	there := []api.PolicyElsewhere{{Cluster: "b", Mirrored: 2, SkippedMore: 2, Skipped: []api.SkippedService{{Service: "x/shop/cart", Reason: "TargetExists", Message: "of b"}}}}
	if got.Mirrored != 4 || got.SkippedMore != 5 || !reflect.DeepEqual(got.Skipped, here) || !reflect.DeepEqual(got.Elsewhere, there) {
		t.Errorf("%+v", got)
	}
	// Without an API server, what others share is imported at once.
	shares[0].As = "import"
	b := v.state.Records.Get(clustermesh.Origin{Cluster: "b"})
	b.Content.Exports = slices.Clone(b.Content.Exports)
	b.Content.Exports[0].Policy = "shop"
	v.state.Records = v.state.Records.With(b.Origin, b)
	if got := policies(shares, v.state, "a", false)[0]; got.Imported != 1 || len(got.Skipped) != 1 {
		t.Errorf("without an API server: %+v", got)
	}
}

// TestForeignIsCached: finding others' programs takes requests for each cgroup of the machine. A
// failure is cached for a shorter time.
func TestForeignIsCached(t *testing.T) {
	var f foreign
	asked := 0
	find := func() ([]datapath.ForeignProgram, error) {
		asked++
		return []datapath.ForeignProgram{{Hook: "connect4", ID: uint32(asked), Path: "/c", Order: datapath.Before}}, nil
	}
	start := time.Unix(100, 0)
	for _, c := range []struct {
		after time.Duration
		id    uint32
	}{{0, 1}, {foreignAge - 1, 1}, {foreignAge, 2}, {foreignAge + 1, 2}} {
		got, err := f.programs(start.Add(c.after), find)
		if want := []datapath.ForeignProgram{{Hook: "connect4", ID: c.id, Path: "/c", Order: datapath.Before}}; err != nil || !slices.Equal(got, want) {
			t.Errorf("after %v: %+v, %v; want %+v", c.after, got, err, want)
		}
	}
	late, gone := start.Add(time.Hour), errors.New("gone")
	fails := func() ([]datapath.ForeignProgram, error) { return nil, gone }
	if _, err := f.programs(late, fails); err != gone {
		t.Errorf("error %v, want %v", err, gone)
	}
	if _, err := f.programs(late.Add(foreignErrorAge-1), find); err != gone {
		t.Errorf("at once: error %v, want %v", err, gone)
	}
	if got, err := f.programs(late.Add(foreignErrorAge), find); err != nil || len(got) != 1 {
		t.Errorf("then: %v, %v", got, err)
	}
}

// TestReadiness: ready is who has applied a plan once, whatever is wrong with the next.
func TestReadiness(t *testing.T) {
	d := &Daemon{log: slog.New(slog.DiscardHandler), kube: noServer{}}
	check := func(want string) {
		t.Helper()
		if got := d.Ready(); got.String() != want || got.Ready != (want == "ok") {
			t.Errorf("%+v: %s, want %s", got, got, want)
		}
	}
	check("not ready: no plan yet")
	d.store(&moment{waiting: []string{"gossip: a first exchange"}})
	check("not ready: waiting for gossip: a first exchange")
	d.store(&moment{})
	check("not ready: the first plan is not applied yet")
	d.store(&moment{applied: time.Unix(1, 0), waiting: []string{"leader"}})
	check("ok")
	d.store(&moment{problems: []clustermesh.Problem{{Message: "bad"}}})
	check("ok")
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
	v.counted.frontends = []datapath.Frontend{{Addr: f.Addr}}
	if v.services()[0].Frontends[0].InKernel {
		t.Error("a map without the backend counts as equal to the plan")
	}
}

// withGlobal makes the service a global one of both clusters besides.
func withGlobal(v viewer) viewer {
	serve := v.result.Imports[0].Service
	ports := v.result.Imports[0].Ports
	for o, ip := range map[clustermesh.Origin]string{{Cluster: "a"}: "10.96.0.7", {Cluster: "b"}: "10.97.0.7"} {
		r := v.state.Records.Get(o)
		r.Content.Globals = []clustermesh.Global{{Service: serve, Ports: ports, IPs: []netip.Addr{netip.MustParseAddr(ip)}, Shared: true}}
		v.state.Records = v.state.Records.With(o, r)
	}
	result, _ := plan.Plan(plan.Inputs{State: v.state, Self: v.self, Config: plan.Config{Mesh: true}}, plan.Past{})
	m := moment{state: v.state, result: result}
	v.moment, v.counted.frontends = &m, m.result.Desired.Frontends
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
	if entry := got[1].ClusterIPs; len(got[0].ClusterIPs) > 0 || len(entry) != 1 || entry[0] != netip.MustParsePrefix("10.202.0.0/16") {
		t.Errorf("entry to %v", entry)
	}
}

// A mesh that is wanted and has no device is not off: who reads that looks for a setting.
func TestMeshWithoutDevice(t *testing.T) {
	for mode, want := range map[MeshMode]string{MeshWireGuard: "down", MeshOff: "off"} {
		k, err := newKernel(Config{StateDir: t.TempDir(), Mesh: MeshConfig{Mode: mode}}, slog.New(slog.DiscardHandler), metrics.New(metrics.Build{}))
		if err != nil {
			t.Fatal(err)
		}
		if got, _ := k.summary(); got.Mesh != want {
			t.Errorf("mode %s: mesh %s, want %s", mode, got.Mesh, want)
		}
	}
}

// The error names the setting that asked for the kernel's WireGuard, and only where it is set.
func TestMeshExplained(t *testing.T) {
	none := fmt.Errorf("%w: the kernel has no WireGuard; load its module", errors.ErrUnsupported)
	for _, c := range []struct {
		implementation wireguard.Kind
		err            error
		want           bool
	}{{"kernel", none, true}, {"auto", none, false}, {"kernel", errors.New("no space"), false}} {
		got := MeshConfig{Implementation: c.implementation}.explain(c.err)
		if named := strings.HasSuffix(got.Error(), ", or set mesh.implementation to userspace"); named != c.want || !errors.Is(got, c.err) {
			t.Errorf("%s, %v: %v", c.implementation, c.err, got)
		}
	}
}

// entered is a topology in which packets for b enter it through b/n1.
type entered struct{ topology.FullMesh }

func (entered) NextHop(self clustermesh.Origin, _ []clustermesh.Origin) func(clustermesh.Origin) clustermesh.Origin {
	return func(to clustermesh.Origin) clustermesh.Origin {
		if to.Cluster == "b" && self.Cluster != "b" {
			to.Node = "n1"
		}
		return to
	}
}

// TestViewTunnels: the tunnels are those of the plan's mesh, whatever the topology.
func TestViewTunnels(t *testing.T) {
	s := clustermesh.State{Records: clustermesh.ByOrigin[clustermesh.Record]{}}
	for i, name := range []string{"a/n1", "b/n1", "b/n2"} {
		o := clustermesh.Origin{Cluster: clustermesh.ClusterName(name[:1]), Node: clustermesh.NodeName(name[2:])}
		s.Records = s.Records.With(o, clustermesh.Record{Origin: o, Stamp: clustermesh.Stamp{Epoch: 1, Version: 1}, Content: clustermesh.Content{Node: &clustermesh.Node{
			Name: o.Node, PublicKey: key.Public{byte(i + 1)}, Addresses: []netip.Addr{netip.AddrFrom4([4]byte{192, 0, 2, byte(i + 1)})},
			WireGuardPort: 51820, Prefixes: []netip.Prefix{netip.PrefixFrom(netip.AddrFrom4([4]byte{10, byte(i), 0, 0}), 24)},
		}}})
	}
	to := func(name string, reached ...string) api.TunnelTo { return api.TunnelTo{Node: name, Reached: reached} }
	back := []api.TunnelTo{to("a/n1")}
	for _, c := range []struct {
		topology topology.Topology
		of       string
		want     []api.NodeTunnels
	}{
		{nil, "", []api.NodeTunnels{{Node: "a/n1", Tunnels: []api.TunnelTo{to("b/n1"), to("b/n2")}}, {Node: "b/n1", Tunnels: back}, {Node: "b/n2", Tunnels: back}}},
		{entered{}, "a/n1", []api.NodeTunnels{{Node: "a/n1", Tunnels: []api.TunnelTo{to("b/n1", "b/n1", "b/n2")}}}},
		{entered{}, "a/n9", nil},
	} {
		self := plan.Self{Cluster: "b", Node: "n2"}
		result, _ := plan.Plan(plan.Inputs{State: s, Self: self, Config: plan.Config{Mesh: true, Topology: c.topology}}, plan.Past{})
		if got := (viewer{moment: &moment{state: s, result: result}, self: self}).tunnels(c.of); !reflect.DeepEqual(got, c.want) {
			t.Errorf("%T, %q: %+v\nwant %+v", c.topology, c.of, got, c.want)
		}
	}
}

// TestTunnelsOfAllAreBounded: in a large clusterset the tunnels of one node are listed, and those
// of all are refused.
func TestTunnelsOfAllAreBounded(t *testing.T) {
	records := clustermesh.ByOrigin[clustermesh.Record]{}.Draft()
	for i := range maxMeshNodes + 1 {
		o := clustermesh.Origin{Cluster: "a", Node: clustermesh.NodeName(fmt.Sprintf("n%d", i))}
		records.Set(o, clustermesh.Record{Origin: o, Stamp: clustermesh.Stamp{Epoch: 1, Version: 1}, Content: clustermesh.Content{Node: &clustermesh.Node{Name: o.Node}}})
	}
	m := &moment{state: clustermesh.State{Records: records.Share()}}
	m.result, _ = plan.Plan(plan.Inputs{State: m.state, Self: plan.Self{Cluster: "a", Node: "n0"}, Config: plan.Config{Mesh: true}}, plan.Past{})
	d := &Daemon{}
	d.current.Store(m)
	if _, err := d.Tunnels(""); err == nil {
		t.Error("the tunnels of all are listed")
	}
	if one, err := d.Tunnels("a/n1"); err != nil || len(one.Items) != 1 {
		t.Errorf("of one node: %+v, %v", one, err)
	}
}
