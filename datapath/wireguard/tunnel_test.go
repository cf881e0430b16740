package wireguard

import (
	"reflect"
	"strings"
	"testing"
)

func TestTunnelArgs(t *testing.T) {
	for _, a := range []TunnelArgs{
		{Device: "strait0"},
		{Device: "strait0", MTU: 1380, MemoryLimit: -1, ReadyFD: 3},
	} {
		got, err := ParseTunnelArgs(a.Flags())
		if err != nil || !reflect.DeepEqual(got, a) {
			t.Errorf("%v became %+v, %v", a.Flags(), got, err)
		}
	}
	for args, message := range map[string]string{
		"":                          `wireguard device ""`,
		"--device=../../etc/passwd": "wireguard device",
		"--device=sixteen-chars-xx": "1 to 15 characters",
		"--device=a --mtu=x":        "mtu",
		"--device=a extra":          `unexpected argument "extra"`,
		"--device=a --unknown":      "unknown",
	} {
		if _, err := ParseTunnelArgs(strings.Fields(args)); err == nil || !strings.Contains(err.Error(), message) {
			t.Errorf("%q: error %v, want it to say %q", args, err, message)
		}
	}
}
