package daemon

import (
	"net/netip"
	"slices"
	"testing"
	"time"

	"strait.io/strait/clustermesh/kube"
	"strait.io/strait/clustermesh/object"
	"strait.io/strait/daemon/api"
	"strait.io/strait/datapath/sockdestroy"
	"strait.io/strait/internal/l4"
)

const webUID = "0f8fad5b-d9cb-469f-a165-70867728950e"

// seen are sockets of a pod, of a process of the node, and of an address, and the records of two sockets
// that were not found.
func seen(partial string) seenSockets {
	front, back := netip.MustParseAddrPort("241.1.2.3:80"), netip.MustParseAddrPort("10.2.1.10:8080")
	out := seenSockets{partial: partial, found: map[uint64]sockdestroy.Socket{},
		cgroups: map[uint64]string{71: "kubepods/besteffort/pod" + webUID + "/1", 72: "system.slice/backup.service"}}
	add := func(cookie uint64, local string, cgroup uint64, backend netip.AddrPort, tcp *sockdestroy.TCP) {
		out.records = append(out.records, sockdestroy.Record{Cookie: cookie, Proto: l4.TCP, Frontend: front, Backend: backend, Connected: true})
		if local != "" {
			out.found[cookie] = sockdestroy.Socket{Cookie: cookie, Proto: l4.TCP, Local: netip.MustParseAddrPort(local), Cgroup: cgroup, TCP: tcp}
		}
	}
	out.programs = map[uint64]string{3: "rsync"}
	ms := time.Millisecond
	add(1, "0.0.0.0:1001", 71, back, &sockdestroy.TCP{Sent: 10, Received: 100, RTT: 2 * ms})
	add(2, "10.1.1.5:1002", 0, back, &sockdestroy.TCP{Sent: 1, Received: 5, RTT: 4 * ms}) // the pod's address
	out.records = append(out.records, out.records[1])                                     // it moved while it was read
	add(3, "192.0.2.9:1003", 72, back, nil)
	add(4, "192.0.2.9:1004", 0, netip.MustParseAddrPort("10.2.1.99:8080"), nil) // a pod that is gone
	add(5, "", 0, back, nil)
	out.records = append(out.records, sockdestroy.Record{Cookie: 6, Proto: l4.UDP, Frontend: netip.MustParseAddrPort("241.9.9.9:53"), Backend: netip.MustParseAddrPort("10.9.9.9:53")})
	out.found[6] = sockdestroy.Socket{Cookie: 6, Proto: l4.UDP, Local: netip.MustParseAddrPort("0.0.0.0:1006")}
	return out
}

// TestFlows: sockets are summed up by client and backend, each with the best name that there is.
func TestFlows(t *testing.T) {
	pods := kube.Pods{Named: []object.NamedPod{{ID: object.ID{Namespace: "shop", Name: "web"}, UID: webUID, Addresses: []netip.Addr{netip.MustParseAddr("10.1.1.5")}}}}
	flows := func(partial string) []api.Flow {
		s := seen(partial)
		out := twoClusters().flows(s, clientsOf(pods, s))
		api.SortFlows(out)
		return out
	}
	number := func(n uint64) *uint64 { return &n }
	client := func(name, kind string) api.FlowClient {
		return api.FlowClient{Cluster: "a", Node: "n1", Name: name, Kind: kind}
	}
	serve := func(c api.FlowClient, b api.FlowBackend, n api.FlowCounts) api.Flow {
		return api.Flow{Client: c, Service: "default/serve", Frontend: l4.New(netip.MustParseAddr("241.1.2.3"), 80, l4.TCP), Port: "http", Backend: b, FlowCounts: n}
	}
	pod := api.FlowBackend{Addr: netip.MustParseAddrPort("10.2.1.10:8080"), Cluster: "b", Node: "n1", Tier: "clusterset"}
	web := serve(client("shop/web", api.ClientPod), pod, api.FlowCounts{Open: 2, Sent: number(11), Received: number(105)})
	web.RTT = 3
	unseen := serve(client("", ""), pod, api.FlowCounts{Open: 1})
	process := serve(client("system.slice/backup.service", api.ClientCgroup), pod, api.FlowCounts{Open: 1})
	process.Client.Program = "rsync"
	departed := serve(client("192.0.2.9", api.ClientAddress), api.FlowBackend{Addr: netip.MustParseAddrPort("10.2.1.99:8080"), Cluster: "b", Node: "n1"}, api.FlowCounts{Open: 1})
	orphan := api.Flow{Client: client("", ""), Frontend: l4.New(netip.MustParseAddr("241.9.9.9"), 53, l4.UDP),
		Backend: api.FlowBackend{Addr: netip.MustParseAddrPort("10.9.9.9:53")}, FlowCounts: api.FlowCounts{Open: 1}}
	for partial, want := range map[string][]api.Flow{
		"":                  {web, orphan, departed, process},
		"permission denied": {web, orphan, unseen, departed, process},
	} {
		got := flows(partial)
		if !slices.EqualFunc(got, want, sameFlow) {
			t.Errorf("%q: got\n%+v\nwant\n%+v", partial, got, want)
		}
	}
}

func sameFlow(a, b api.Flow) bool {
	same := func(a, b *uint64) bool { return (a == nil) == (b == nil) && (a == nil || *a == *b) }
	known := same(a.Sent, b.Sent) && same(a.Received, b.Received)
	a.Sent, a.Received, b.Sent, b.Received = nil, nil, nil, nil
	return known && a == b
}

func TestPodUID(t *testing.T) {
	for path, want := range map[string]string{
		"kubepods/burstable/pod" + webUID + "/4c1e":                                                       webUID,
		"kubepods.slice/kubepods-besteffort.slice/kubepods-besteffort-pod0f8fad5b_d9cb.slice/cri-1.scope": "0f8fad5b-d9cb",
		"system.slice/podman.service":                                                                     "man.service", // it is no pod's UID, so it names none
		"system.slice":                                                                                    "",
		"":                                                                                                "",
	} {
		if got := podUID(path); got != want {
			t.Errorf("%q: got %q, want %q", path, got, want)
		}
	}
	for rel, of := range map[string][2]string{"a/b": {"/sys/fs/cgroup", "/sys/fs/cgroup/a/b"}, "": {"/x", "/x"}, "/other/a": {"/x", "/other/a"}} {
		if got := below(of[0], of[1]); got != rel {
			t.Errorf("%q below %q: got %q, want %q", of[1], of[0], got, rel)
		}
		if dir := above(of[0], rel); rel != "" && dir != of[1] {
			t.Errorf("%q above %q: got %q, want %q", rel, of[0], dir, of[1])
		}
	}
}
