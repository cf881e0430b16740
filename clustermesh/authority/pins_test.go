package authority

import (
	"net/netip"
	"reflect"
	"slices"
	"strings"
	"testing"
)

func TestPinsAreReadBack(t *testing.T) {
	text := pins().Encode()
	back, err := ParsePins(text)
	if err != nil || !reflect.DeepEqual(back.sorted(), pins().sorted()) {
		t.Errorf("got %+v, %v from\n%s", back, err, text)
	}
	if strings.Contains(string(text), east.Base64()) {
		t.Errorf("the pins hold a private key:\n%s", text)
	}
}

func TestPinsThatAreWrong(t *testing.T) {
	good := string(pins().Encode())
	for name, c := range map[string]struct{ from, to, mistake string }{
		"no cluster":          {good, "clusters: []", "want at least this cluster's own pin"},
		"an unknown field":    {"cluster: east", "cluster: east\n  podz: []", "podz"},
		"twice":               {"cluster: west", "cluster: east", "clusters[1].cluster: east is pinned twice"},
		"a name with a slash": {"cluster: east", "cluster: a/b", "clusters[0].cluster"},
		"no root":             {"  - " + east.Public().String(), "", "clusters[0].roots: has 0 keys"},
		"a broken root":       {east.Public().String(), "AAAA", "is not a public key"},
		"every address":       {"10.1.0.0/16", "0.0.0.0/0", "clusters[0].pods[0]"},
		"host bits":           {"10.1.0.0/16", "10.1.2.3/16", "did you mean 10.1.0.0/16"},
		"no fingerprint":      {"cluster: east", "cluster: east\n  revoked: [n1]", `clusters[0].revoked[0]: "n1" is not the fingerprint`},
		"a bad pattern":       {"- shop", "- '['", "clusters[0].namespaces[0]"},
	} {
		text := strings.Replace(good, c.from, c.to, 1)
		if text == good {
			t.Fatalf("%s: nothing was changed in\n%s", name, good)
		}
		if _, err := ParsePins([]byte(text)); err == nil || !strings.Contains(err.Error(), c.mistake) {
			t.Errorf("%s: got %v, want %q", name, err, c.mistake)
		}
	}
}

func TestOverlap(t *testing.T) {
	set := func(cluster string, pods, nodes []string) Pins {
		ps := pins()
		p := ps["east"]
		if cluster == "west" {
			p = ps["west"]
		}
		p.Pods, p.Nodes = prefixes(pods...), prefixes(nodes...)
		ps[p.Cluster] = p
		return ps
	}
	for name, c := range map[string]struct {
		pins    Pins
		mistake string
	}{
		"none":             {pins(), ""},
		"pods":             {set("west", []string{"10.0.0.0/8"}, nil), "the pods of cluster east have 10.1.0.0/16, and cluster west has 10.0.0.0/8"},
		"pods and nodes":   {set("west", nil, []string{"10.1.2.0/24"}), "the pods of cluster east have 10.1.0.0/16, and cluster west has 10.1.2.0/24"},
		"nodes and pods":   {set("west", []string{"192.0.2.0/24"}, nil), "the pods of cluster west have 192.0.2.0/24"},
		"a common network": {set("west", nil, []string{"192.0.2.0/24"}), ""},
	} {
		if err := c.pins.Overlap(); (err == nil) != (c.mistake == "") || err != nil && !strings.Contains(err.Error(), c.mistake) {
			t.Errorf("%s: got %v, want %q", name, err, c.mistake)
		}
	}
}

// FuzzParsePins: a file that an operator wrote is read or refused, and what is read is written and
// read back the same.
func FuzzParsePins(f *testing.F) {
	f.Add(pins().Encode())
	f.Add([]byte("clusters: [{cluster: a}]"))
	f.Fuzz(func(t *testing.T, text []byte) {
		ps, err := ParsePins(text)
		if err != nil {
			return
		}
		back, err := ParsePins(ps.Encode())
		if err != nil || string(back.Encode()) != string(ps.Encode()) {
			t.Fatalf("got %v, %v", back, err)
		}
	})
}

// TestSharedNodes: clusters whose machines are in one network can claim addresses of each other's.
func TestSharedNodes(t *testing.T) {
	ps := Pins{
		"a": {Cluster: "a", Nodes: []netip.Prefix{netip.MustParsePrefix("192.0.2.0/25"), netip.MustParsePrefix("2001:db8::/64")}},
		"b": {Cluster: "b", Nodes: []netip.Prefix{netip.MustParsePrefix("192.0.2.0/24"), netip.MustParsePrefix("2001:db8::/48")}},
		"c": {Cluster: "c", Nodes: []netip.Prefix{netip.MustParsePrefix("198.51.100.0/24")}},
	}
	want := []string{"cluster a has nodes in 192.0.2.0/25, and cluster b in 192.0.2.0/24", "cluster a has nodes in 2001:db8::/64, and cluster b in 2001:db8::/48"}
	if got := ps.SharedNodes(); !slices.Equal(got, want) {
		t.Errorf("%q", got)
	}
}
