package socklb

import (
	"strings"
	"testing"
)

func TestConfigValidate(t *testing.T) {
	for _, tt := range []struct {
		name string
		cfg  Config
		want []string // one per line of the error
	}{
		{"least", Config{Pins: "/sys/fs/bpf/strait"}, nil},
		{"empty", Config{}, []string{"pins: is empty"}},
		{"all at once", Config{Pins: "strait", Cgroup: "x", MaxFrontends: 1 << 30, MaxBackends: 1 << 30, MaxSockets: 3},
			[]string{"pins: ", "cgroup: ", "maxFrontends: ", "maxBackends: ", "maxSockets: 3 is not a power of two"}},
		{"dot", Config{Pins: "/sys/fs/bpf/a.b"}, []string{"pins: "}},
		{"root", Config{Pins: "/"}, []string{"pins: "}},
		{"too many sockets", Config{Pins: "/p", MaxSockets: 1 << 31}, []string{"maxSockets: "}},
	} {
		err := tt.cfg.Validate()
		var lines []string
		if err != nil {
			lines = strings.Split(err.Error(), "\n")
		}
		if len(lines) != len(tt.want) {
			t.Errorf("%s: %v", tt.name, err)
			continue
		}
		for i, w := range tt.want {
			if !strings.HasPrefix(lines[i], w) {
				t.Errorf("%s: line %d is %q, want %q…", tt.name, i, lines[i], w)
			}
		}
	}
}
