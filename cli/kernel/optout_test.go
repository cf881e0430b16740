package kernel

import (
	"testing"
)

func TestShellWord(t *testing.T) {
	for word, want := range map[string]string{"/sys/fs/cgroup/a-b.slice": "/sys/fs/cgroup/a-b.slice",
		`/x/dev-disk\x2dby.swap`: `'/x/dev-disk\x2dby.swap'`, "it's": `'it'\''s'`, "a b": "'a b'", "$(reboot)": "'$(reboot)'"} {
		if got := shellWord(word); got != want {
			t.Errorf("%s became %s, want %s", word, got, want)
		}
	}
}
