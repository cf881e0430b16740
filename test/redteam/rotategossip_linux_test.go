package redteam

import (
	"errors"
	"net/netip"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"strait.io/strait/internal/testutil"
)

// rotateGossip makes a step of the rotation on a member's machine, as soon as all have made the one
// before, and copies the keys to others. It reports whether that was the last one.
func (m *member) rotateGossip(others ...*member) (done bool) {
	m.w.Helper()
	var out []byte
	command := m.w.runbook("strait clusterset rotate --gossip-key", 1)[0]
	testutil.Eventually(m.w, patience, func() error {
		args := append(command[1:len(command):len(command)], "--dir", m.dir, "--socket", m.path("run/strait.sock"), "--ascii")
		cmd := exec.Command(filepath.Join(m.w.programs, "strait"), args...)
		var err error
		if out, err = cmd.CombinedOutput(); err != nil {
			return errors.New(string(out))
		}
		return nil
	})
	text, err := os.ReadFile(m.path("gossip.key"))
	m.w.must(err)
	if key := strings.Fields(string(text))[0]; strings.Contains(string(out), key) {
		m.w.Errorf("the command shows a key:\n%s", out)
	}
	for _, o := range others {
		o.write("gossip.key", string(text))
	}
	return strings.Contains(string(out), "counts nowhere")
}

// TestRotateGossipKey: a cluster that was evicted still has the gossip key, and loses it. Nothing is lost
// for a moment, and no daemon is restarted but one, for another reason and in the middle.
func TestRotateGossipKey(t *testing.T) {
	if !inside(t) {
		return
	}
	w := newWorld(t, nil)
	w.attack(origin("mallory", "n0"), nil).Publish(content("n0", mallory, stolen))
	w.west.says("STR2305", "cluster mallory")
	moved := netip.MustParseAddr("10.2.1.8")
	end := w.west.always(pod(eastNumber), moved)
	steps := 1
	for ; !w.west.rotateGossip(w.east); steps++ {
		if steps == 2 {
			w.east.stop()
			w.east.start()
		}
		if steps > 9 {
			t.Fatal("the rotation does not end")
		}
	}
	if steps != 4 { // accepted, used, alone, and the check that all have that
		t.Errorf("the rotation took %d commands, want 4", steps)
	}
	if _, err := os.Stat(w.west.path("gossip.key.next")); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("the next key is left behind: %v", err)
	}
	w.east.write("manifests/serve.yaml", manifestServe(moved))
	w.west.balances(moved)
	end()

	w.west.says("STR5101", "gossip key differs")
	w.west.saysNot("STR2305") // mallory says nothing any more
	w.west.stop()
	w.west.start()
	w.east.write("manifests/serve.yaml", manifestServe(pod(eastNumber)))
	w.west.balances(pod(eastNumber))
}
