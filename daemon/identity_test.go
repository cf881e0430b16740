package daemon

import (
	"net/netip"
	"os"
	"path/filepath"
	"reflect"
	"testing"

	"strait.io/strait/clustermesh"
	"strait.io/strait/internal/notify"
)

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

func addrPort(text string) netip.AddrPort {
	if text == "" {
		return netip.AddrPort{}
	}
	return netip.MustParseAddrPort(text)
}
