package identity

import (
	"net/netip"
	"strings"
	"testing"

	"strait.io/strait/clustermesh/object"
)

func addrPort(text string) netip.AddrPort {
	if text == "" {
		return netip.AddrPort{}
	}
	return netip.MustParseAddrPort(text)
}

func TestDecide(t *testing.T) {
	node := netip.MustParseAddr("192.0.2.7")
	full := object.Identity{Read: true, Property: "east", UID: "u1", Node: node}
	last := Who{Cluster: "west", UID: "u0", Advertise: netip.MustParseAddrPort("192.0.2.9:7946")}
	for _, tc := range []struct {
		name, cluster, advertise string
		id                       object.Identity
		last                     Who
		patient                  bool
		want                     string // cluster, uid, address; or what is waited for; or the error
	}{
		{"by ClusterProperty", "", "", full, last, true, "east u1 192.0.2.7:7946"},
		{"by config", "north", "", object.Identity{Read: true, UID: "u1", Node: node}, last, true, "north u1 192.0.2.7:7946"},
		{"both agree", "east", "", full, Who{}, false, "east u1 192.0.2.7:7946"},
		{"both differ", "north", "", full, last, true, `error: cluster: is "north" in the config, but ClusterProperty cluster.clusterset.k8s.io says "east"`},
		{"a property that is no label", "", "", object.Identity{Read: true, Property: "a.b", UID: "u1", Node: node}, last, true, `error: ClusterProperty cluster.clusterset.k8s.io: spec.value: "a.b"`},
		{"advertise by config", "", "198.51.100.1:1", object.Identity{Read: true, Property: "east", UID: "u1"}, Who{}, false, "east u1 198.51.100.1:1"},
		{"neither", "", "", object.Identity{Read: true, UID: "u1", Node: node}, last, true, "waiting: the cluster's id: create ClusterProperty"},
		{"no address", "", "", object.Identity{Read: true, Property: "east", UID: "u1"}, last, true, `waiting: an address of Node "n1"`},
		{"no API server yet", "east", "", object.Identity{}, last, false, "waiting: the UID of Namespace kube-system"},
		{"no API server, known from the last life", "", "", object.Identity{}, last, true, "west u0 192.0.2.9:7946"},
		{"no API server, and the config has changed", "east", "", object.Identity{}, last, true, "waiting: the UID"},
		{"no API server ever", "east", "", object.Identity{}, Who{}, true, "waiting: the UID"},
		{"the property is not read yet", "east", "", object.Identity{UID: "u1", Node: node}, Who{}, true, "waiting: ClusterProperty"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			c := Config{Cluster: tc.cluster, Node: "n1", Port: 7946, Advertise: addrPort(tc.advertise)}
			w, waiting, err := Decide(c, tc.id, tc.last, tc.patient)
			got := strings.Join([]string{string(w.Cluster), w.UID, w.Advertise.String()}, " ")
			if err != nil {
				got = "error: " + err.Error()
			} else if waiting != "" {
				got = "waiting: " + waiting
			}
			if !strings.HasPrefix(got, tc.want) {
				t.Errorf("got  %s\nwant %s", got, tc.want)
			}
		})
	}
}

func TestProblems(t *testing.T) {
	now := Who{Cluster: "east", UID: "u1"}
	for _, tc := range []struct {
		name, config string
		id           object.Identity
		want         string
	}{
		{"the same", "", object.Identity{Read: true, Property: "east", UID: "u1"}, ""},
		{"unknown", "", object.Identity{}, ""},
		{"the property is gone", "", object.Identity{Read: true, UID: "u1"}, ""},
		{"another id", "", object.Identity{Read: true, Property: "west", UID: "u1"}, `its id is now "west"`},
		{"against the config", "east", object.Identity{Read: true, Property: "west", UID: "u1"}, `"west"`},
		{"another cluster", "east", object.Identity{Read: true, UID: "u2"}, "its UID is u2, and was u1"},
	} {
		got := Problems(Config{Cluster: tc.config}, now, tc.id)
		if (len(got) > 0) != (tc.want != "") || len(got) > 0 && !strings.Contains(got[0].String(), tc.want) {
			t.Errorf("%s: %v", tc.name, got)
		}
	}
}
