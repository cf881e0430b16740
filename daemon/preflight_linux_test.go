package daemon

import (
	"net"
	"net/netip"
	"os"
	"path/filepath"
	"testing"
	"testing/fstest"

	"strait.io/strait/internal/testutil"
)

// TestPreflight: a machine's own kernel is asked, and a port that another program has is reported while
// the others are free.
func TestPreflight(t *testing.T) {
	ns := testutil.NetNS(t)
	var c Config
	c.setDefaults()
	c.Gossip.Bind = netip.MustParseAddrPort("127.0.0.1:7946")
	must := func(err error) {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
	}
	must(ns.Do(func() error {
		taken, err := net.ListenPacket("udp", "127.0.0.1:7946")
		if err != nil {
			return err
		}
		defer taken.Close()
		f := Preflight(t.Context(), c, "/")
		if len(f.Features) < 10 || f.FeaturesError != "" || f.NFTError != "" || f.Kernel == "" || f.ForeignError != "" && f.CgroupError == "" {
			t.Errorf("%+v", f)
		}
		for _, p := range f.Ports {
			if is := p.Port == "7946/UDP"; is != (p.Error == "address already in use") || !is && p.Error != "" {
				t.Errorf("%+v", p)
			}
		}
		if len(f.Ports) != 4 || f.Link != "" { // gossip twice, WireGuard, metrics; no link leaves the namespace
			t.Errorf("%d ports, link %q", len(f.Ports), f.Link)
		}
		return nil
	}))
}

// TestPreflightConfig: without a file the defaults are checked, and with a wrong one nothing.
func TestPreflightConfig(t *testing.T) {
	dir := t.TempDir()
	c, err := PreflightConfig(filepath.Join(dir, "none.yaml"))
	if err != nil || c.Mesh.Port != 51820 || c.Gossip.Bind.Port() != 7946 || c.BPF.Pins == "" {
		t.Errorf("%+v, %v", c, err)
	}
	file := filepath.Join(dir, "strait.yaml")
	if err := os.WriteFile(file, []byte("mesh: {port: many}"), 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := PreflightConfig(file); err == nil {
		t.Error("a wrong file is taken")
	}
}

func TestWireGuardOf(t *testing.T) {
	file := &fstest.MapFile{Data: []byte("kernel/drivers/net/wireguard/wireguard.ko:\n")}
	for want, files := range map[string]fstest.MapFS{
		"":          {},
		"userspace": {"dev/net/tun": file, "lib/modules/5.4.0/modules.dep": file},
		"kernel":    {"dev/net/tun": file, "lib/modules/6.12.0/modules.dep": file},
	} {
		if got := wireGuardOf(files, "6.12.0"); got != want {
			t.Errorf("%v: %q, want %q", files, got, want)
		}
	}
	if got := wireGuardOf(fstest.MapFS{"sys/module/wireguard/refcnt": file}, "6.12.0"); got != "kernel" {
		t.Errorf("loaded: %q", got)
	}
}
