package daemon

import (
	"log/slog"
	"net"
	"os"
	"os/exec"
	"testing"

	"strait.io/strait/internal/testutil"
)

// TestMeshOffRemovesItsDevice: a node whose mesh was switched off keeps no tunnel, and touches no
// device that it cannot have made.
func TestMeshOffRemovesItsDevice(t *testing.T) {
	testutil.NeedTun(t)
	testutil.NetNS(t)
	const device = "strait-off0"
	there := func() bool {
		_, err := net.InterfaceByName(device)
		return err == nil
	}
	// As the process of a userspace device leaves it.
	if out, err := exec.Command("ip", "tuntap", "add", "dev", device, "mode", "tun").CombinedOutput(); err != nil {
		t.Fatalf("make a device: %v: %s", err, out)
	}
	c := Config{StateDir: t.TempDir(), Mesh: MeshConfig{Mode: MeshOff, Device: device}}
	k, err := newKernel(c, slog.New(slog.DiscardHandler), nil)
	if err != nil {
		t.Fatal(err)
	}
	var part pruner
	for _, s := range k.stack.slots {
		if s.name() == "wireguard" {
			part = s.part.(pruner)
		}
	}
	prune := func() {
		t.Helper()
		if problems, err := part.prune(t.Context(), job{}); err != nil || len(problems) > 0 {
			t.Fatalf("prune: %v, %v", problems, err)
		}
	}
	if prune(); !there() {
		t.Error("a node that never had a mesh removed a device")
	}
	if err := os.WriteFile(k.keyFile(), nil, 0o600); err != nil {
		t.Fatal(err)
	}
	if prune(); there() {
		t.Error("the device is still there")
	}
	prune() // nothing to do
}
