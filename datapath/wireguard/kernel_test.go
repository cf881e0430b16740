package wireguard

import (
	"errors"
	"net/netip"
	"path/filepath"
	"strings"
	"testing"

	"golang.org/x/sys/unix"
)

// without are the links of a kernel that has no WireGuard.
type without struct{}

func (without) Claim(string) error                    { return nil }
func (without) AddWireGuard(string) error             { return unix.EOPNOTSUPP }
func (without) SetUp(string, int, netip.Prefix) error { return errors.New("there is no device") }

// A setting for the kernel's ends in an error, and not silently in another device.
func TestKernelHasNone(t *testing.T) {
	_, err := Open(t.Context(), Config{Device: "strait-none", Mode: Kernel, KeyFile: filepath.Join(t.TempDir(), "key")}, without{})
	if !errors.Is(err, errors.ErrUnsupported) {
		t.Fatalf("Open: %v", err)
	}
	for _, want := range []string{"the kernel has no WireGuard", "modprobe wireguard"} {
		if !strings.Contains(err.Error(), want) {
			t.Errorf("%v does not say %q", err, want)
		}
	}
}
