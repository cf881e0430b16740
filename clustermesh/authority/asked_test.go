package authority

import (
	"net/netip"
	"reflect"
	"strings"
	"testing"

	"strait.io/strait/clustermesh"
)

func TestAnnotated(t *testing.T) {
	asks := Request{Want: Statement{Cluster: "west", Node: "n2", Key: PrivateKey{2}.Public()}}
	key := asks.Want.Key.Fingerprint()
	for refusal, keys := range map[string]map[clustermesh.NodeName]string{
		"":                            {"n1": "SHA256:other", "n2": key},
		"set it to " + key:            {"n1": key},
		"the machine's key is " + key: {"n2": "SHA256:other"},
	} {
		err := Annotated(asks, clustermesh.Local{NodeKeys: keys})
		if refusal == "" && err != nil || refusal != "" && (err == nil || !strings.Contains(err.Error(), refusal)) {
			t.Errorf("keys %v: %v, want %q", keys, err, refusal)
		}
	}
}

// TestListed: nothing is stated of a node whose object has no address.
func TestListed(t *testing.T) {
	local := clustermesh.Local{Nodes: []clustermesh.Node{{Name: "n2", Addresses: []netip.Addr{netip.MustParseAddr("192.0.2.2")}}, {Name: "n3"}}}
	for node, refusal := range map[clustermesh.NodeName]string{"n2": "", "n3": "no address", "n4": "no Node n4"} {
		if err := Listed(node, local); refusal == "" && err != nil || refusal != "" && (err == nil || !strings.Contains(err.Error(), refusal)) {
			t.Errorf("%s: %v, want %q", node, err, refusal)
		}
	}
}

// TestObjectsOf: what annotations give a node is kept apart from what Kubernetes gives it.
func TestObjectsOf(t *testing.T) {
	got := ObjectsOf(clustermesh.Local{
		Nodes: []clustermesh.Node{
			{Name: "n1", Addresses: []netip.Addr{netip.MustParseAddr("192.0.2.1")}, Prefixes: prefixes("10.1.1.0/24"), Locality: clustermesh.Locality{Zone: "a"}},
			{Name: "n2"},
		},
		NodesKnown: true, ClusterIPs: prefixes("10.96.0.0/22"),
		NodePrefixes:   map[clustermesh.NodeName][]netip.Prefix{"n1": prefixes("10.1.9.0/24")},
		NodeClusterIPs: map[clustermesh.NodeName][]netip.Prefix{"n1": prefixes("10.96.0.0/16")},
	})
	want := Objects{All: true, ClusterIPs: prefixes("10.96.0.0/22"), Nodes: []Holder{
		{
			Name: "n1", Locality: clustermesh.Locality{Zone: "a"}, Addresses: []netip.Addr{netip.MustParseAddr("192.0.2.1")},
			PodCIDRs: prefixes("10.1.1.0/24"), Annotated: prefixes("10.1.9.0/24"), Entry: prefixes("10.96.0.0/16"),
		},
		{Name: "n2"},
	}}
	if !reflect.DeepEqual(got, want) {
		t.Errorf("got %+v, want %+v", got, want)
	}
}
