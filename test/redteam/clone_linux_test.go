package redteam

import (
	"errors"
	"fmt"
	"net/netip"
	"os"
	"os/exec"
	"strings"
	"testing"

	"strait.io/strait/internal/testutil"
)

// cloneNumber is that of a clone's address; its pods are of the cluster that it was cloned in.
const cloneNumber = 5

// clone makes another machine with all files of this one, while it runs. The caller starts it.
func (m *member) clone() *member {
	m.w.Helper()
	c := &member{w: m.w, cluster: m.cluster, node: m.node, number: cloneNumber, dir: m.w.TempDir(), bpf: testutil.BPFFS(m.w), cgroup: testutil.Cgroup(m.w), log: &lines{}}
	for _, name := range []string{"root.key", "gossip.key", "pins.yaml", "manifests/node.yaml", "manifests/serve.yaml"} {
		text, err := os.ReadFile(m.path(name))
		m.w.must(err)
		c.write(name, string(text))
	}
	m.w.copy(m.path("state"), c.path("state"))
	return c
}

// copy copies a directory with the modes of its files to a place where nothing is. A running daemon
// can replace a file that cp has listed and not yet read; then it copies all of them again.
func (w *world) copy(from, to string) {
	w.Helper()
	testutil.Eventually(w, patience, func() error {
		out, err := exec.Command("cp", "-a", from, to).CombinedOutput()
		if err != nil {
			err = errors.Join(fmt.Errorf("%w: %s", err, out), os.RemoveAll(to))
		}
		return err
	})
}

// northNumber is that of a third cluster.
const northNumber = 4

// northsPod is the pod of the Service default/other, which north shares.
var northsPod = netip.MustParseAddr("10.4.1.7")

// newWorldWithNorth is newWorld with a third cluster, which shares another Service.
func newWorldWithNorth(t *testing.T) (w *world, north *member) {
	t.Helper()
	w = newWorld(t, map[string]byte{"north": northNumber})
	north = w.member("north", northNumber)
	north.write("manifests/other.yaml", strings.ReplaceAll(manifestServe(northsPod), "serve", "other"))
	north.start()
	for _, m := range []*member{w.west, w.east, north} {
		m.balances(pod(eastNumber), northsPod)
	}
	return w, north
}

// TestClonedMachine: a machine is cloned with its keys and its name. Every daemon names both; what the
// machine shared stays, and the others go on. Without the clone, all is well again.
func TestClonedMachine(t *testing.T) {
	if !inside(t) {
		return
	}
	w, north := newWorldWithNorth(t)
	ends := []func(){w.west.always(pod(eastNumber)), north.always(pod(eastNumber))}
	c := w.east.clone()
	c.start()
	for _, m := range []*member{w.west, north, w.east} {
		m.says("STR2403", "node east/n1", "127.0.0.2", "127.0.0.5")
	}
	c.says("STR2403", "node east/n1", "127.0.0.2", "127.0.0.5")
	north.write("manifests/other.yaml", strings.ReplaceAll(manifestServe(netip.MustParseAddr("10.4.1.8")), "serve", "other"))
	w.west.balances(pod(eastNumber), netip.MustParseAddr("10.4.1.8"))
	north.write("manifests/other.yaml", strings.ReplaceAll(manifestServe(northsPod), "serve", "other"))
	w.west.balances(pod(eastNumber), northsPod)
	c.stop()
	for _, end := range ends {
		end()
	}
	w.east.write("manifests/serve.yaml", manifestServe(moved))
	w.west.balances(moved, northsPod)
	north.balances(moved, northsPod)
	for _, m := range []*member{w.west, w.east, north} {
		m.saysNothing()
	}
}

// TestClonedMachineRenamed: a machine is cloned with its keys, and the clone gets another name. Every daemon
// names both, and both are believed until it is told which is which.
func TestClonedMachineRenamed(t *testing.T) {
	if !inside(t) {
		return
	}
	w, north := newWorldWithNorth(t)
	w.pins["east"] = withMachine(w.pins["east"], cloneNumber)
	for _, m := range []*member{w.west, w.east, north} {
		m.write("pins.yaml", string(w.pins.Encode()))
	}
	c := w.east.clone()
	c.node = "n5"
	clones := netip.MustParseAddr("10.2.5.7")
	c.write("manifests/node.yaml", strings.NewReplacer("n1", "n5", "10.2.1.0", "10.2.5.0", machine(eastNumber).String(), machine(cloneNumber).String()).Replace(manifestNode(eastNumber, "")))
	c.write("manifests/serve.yaml", strings.ReplaceAll(manifestServe(clones), "nodeName: n1", "nodeName: n5"))
	end := w.west.always(pod(eastNumber))
	c.start()
	for _, m := range []*member{w.west, north, w.east, c} {
		m.says("STR2313", "node east/n5", "the node key of node east/n1", "remove node.key")
	}
	w.west.balances(pod(eastNumber), clones, northsPod)

	c.stop()
	w.must(os.Remove(c.path("state/node.key")))
	c.start()
	for _, m := range []*member{w.west, north, w.east, c} {
		m.saysNothing()
	}
	w.west.balances(pod(eastNumber), clones, northsPod)
	north.balances(pod(eastNumber), clones, northsPod)
	end()
}
