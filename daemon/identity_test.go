package daemon

import (
	"net/netip"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"

	"strait.io/strait/clustermesh"
	"strait.io/strait/clustermesh/kube"
	"strait.io/strait/internal/notify"
)

func addrPort(text string) netip.AddrPort {
	if text == "" {
		return netip.AddrPort{}
	}
	return netip.MustParseAddrPort(text)
}

func TestDecideWho(t *testing.T) {
	node := netip.MustParseAddr("192.0.2.7")
	full := kube.Identity{Read: true, Property: "east", UID: "u1", Node: node}
	last := who{Cluster: "west", UID: "u0", Advertise: netip.MustParseAddrPort("192.0.2.9:7946")}
	for _, tc := range []struct {
		name, cluster, advertise string
		id                       kube.Identity
		last                     who
		patient                  bool
		want                     string // cluster, uid, address; or what is waited for; or the error
	}{
		{"by ClusterProperty", "", "", full, last, true, "east u1 192.0.2.7:7946"},
		{"by config", "north", "", kube.Identity{Read: true, UID: "u1", Node: node}, last, true, "north u1 192.0.2.7:7946"},
		{"both agree", "east", "", full, who{}, false, "east u1 192.0.2.7:7946"},
		{"both differ", "north", "", full, last, true, `error: cluster: is "north" in the config, but ClusterProperty cluster.clusterset.k8s.io says "east"`},
		{"a property that is no label", "", "", kube.Identity{Read: true, Property: "a.b", UID: "u1", Node: node}, last, true, `error: ClusterProperty cluster.clusterset.k8s.io: spec.value: "a.b"`},
		{"advertise by config", "", "198.51.100.1:1", kube.Identity{Read: true, Property: "east", UID: "u1"}, who{}, false, "east u1 198.51.100.1:1"},
		{"neither", "", "", kube.Identity{Read: true, UID: "u1", Node: node}, last, true, "waiting: the cluster's id: create ClusterProperty"},
		{"no address", "", "", kube.Identity{Read: true, Property: "east", UID: "u1"}, last, true, `waiting: an address of Node "n1"`},
		{"no API server yet", "east", "", kube.Identity{}, last, false, "waiting: the UID of Namespace kube-system"},
		{"no API server, known from the last life", "", "", kube.Identity{}, last, true, "west u0 192.0.2.9:7946"},
		{"no API server, and the config has changed", "east", "", kube.Identity{}, last, true, "waiting: the UID"},
		{"no API server ever", "east", "", kube.Identity{}, who{}, true, "waiting: the UID"},
		{"the property is not read yet", "east", "", kube.Identity{UID: "u1", Node: node}, who{}, true, "waiting: ClusterProperty"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			c := Config{Cluster: tc.cluster, Node: "n1", Gossip: GossipConfig{Bind: addrPort("0.0.0.0:7946"), Advertise: addrPort(tc.advertise)}}
			w, waiting, err := decideWho(c, tc.id, tc.last, tc.patient)
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

func TestIdentityProblems(t *testing.T) {
	now := who{Cluster: "east", UID: "u1"}
	for _, tc := range []struct {
		name, config string
		id           kube.Identity
		want         string
	}{
		{"the same", "", kube.Identity{Read: true, Property: "east", UID: "u1"}, ""},
		{"unknown", "", kube.Identity{}, ""},
		{"the property is gone", "", kube.Identity{Read: true, UID: "u1"}, ""},
		{"another id", "", kube.Identity{Read: true, Property: "west", UID: "u1"}, `its id is now "west"`},
		{"against the config", "east", kube.Identity{Read: true, Property: "west", UID: "u1"}, `"west"`},
		{"another cluster", "east", kube.Identity{Read: true, UID: "u2"}, "its UID is u2, and was u1"},
	} {
		got := identityProblems(Config{Cluster: tc.config}, now, tc.id)
		if (len(got) > 0) != (tc.want != "") || len(got) > 0 && !strings.Contains(got[0].String(), tc.want) {
			t.Errorf("%s: %v", tc.name, got)
		}
	}
}

func TestSeedsFile(t *testing.T) {
	path := filepath.Join(t.TempDir(), "seeds")
	d := &Daemon{}
	d.files = d.watchFiles(Config{Gossip: GossipConfig{SeedsFile: path}}, notify.New())
	s := d.files.seeds.Source()
	if got, problems := d.files.seeds.Next(); len(got)+len(problems) > 0 {
		t.Errorf("a file that is not there: %v %v", got, problems)
	}
	write := func(text string) {
		t.Helper()
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	write("# both clusters\n192.0.2.1:7946 # east\n\n  [fd00::1]:7946\n192.0.2.1:7946")
	if !s.Look() || s.Look() {
		t.Error("a change is seen once")
	}
	if got, _ := d.files.seeds.Next(); !reflect.DeepEqual(got, []string{"192.0.2.1:7946", "[fd00::1]:7946"}) {
		t.Errorf("seeds %q", got)
	}
	if err := os.Remove(path); err != nil {
		t.Fatal(err)
	}
	if err := os.Mkdir(path, 0o700); err != nil {
		t.Fatal(err)
	}
	if !s.Look() {
		t.Error("that it cannot be read is no news")
	}
	if got, problems := d.files.seeds.Next(); len(got) != 2 || len(problems) != 1 || problems[0].File != path {
		t.Errorf("seeds %q, problems %v", got, problems)
	}
}

func TestNodeHints(t *testing.T) {
	nodes := []clustermesh.Node{{Name: "n1", Addresses: []netip.Addr{netip.MustParseAddr("192.0.2.1")}}, {Name: "n2"},
		{Name: "n3", Addresses: []netip.Addr{netip.MustParseAddr("192.0.2.3"), netip.MustParseAddr("192.0.2.4")}}}
	if got := nodeHints(nodes, "n1", 7946); len(got) != 1 || got[0].String() != "192.0.2.3:7946" {
		t.Errorf("hints %v", got)
	}
}
