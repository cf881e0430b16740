package redteam

import (
	"context"
	"fmt"
	"net/netip"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"strait.io/strait/clustermesh/authority"
	"strait.io/strait/daemon/api"
	"strait.io/strait/daemon/api/client"
	"strait.io/strait/internal/testutil"
	"strait.io/strait/test/pages"
)

// clusterset runs strait clusterset with the keys of a cluster, as its operator does.
func (m *member) clusterset(args ...string) {
	m.w.Helper()
	m.strait(append([]string{"clusterset"}, append(args, "--dir", m.dir)...)...)
}

// strait runs a command that asks this daemon.
func (m *member) strait(args ...string) {
	m.w.Helper()
	if err := m.run(args...); err != nil {
		m.w.Fatal(err)
	}
}

func (m *member) run(args ...string) error {
	cmd := exec.Command(filepath.Join(m.w.programs, "strait"), append(args, "--socket", m.path("run/strait.sock"))...)
	out, err := cmd.CombinedOutput()
	if err != nil {
		err = fmt.Errorf("strait %v: %w: %s", args, err, out)
	}
	return err
}

// runbooks say how each block of docs/security.md begins that a test here executes.
var runbooks = []string{
	"strait clusterset rotate  ", "strait clusterset evict", "strait clusterset rotate --gossip-key", "strait node revoke",
}

// TestRunbooks: every block of commands on the page is one that a test knows.
func TestRunbooks(t *testing.T) {
	blocks := securityBlocks(t)
	for _, begins := range runbooks {
		n := len(blocks)
		if blocks = slices.DeleteFunc(blocks, func(b pages.Block) bool { return strings.HasPrefix(b.Script(), begins) }); len(blocks) != n-1 {
			t.Errorf("%d blocks begin with %q, want one", n-len(blocks), begins)
		}
	}
	for _, b := range blocks {
		t.Errorf("%s: no test executes it", b.Place())
	}
}

func securityBlocks(t testing.TB) []pages.Block {
	t.Helper()
	all, err := pages.Load(os.DirFS("../.."))
	if err != nil {
		t.Fatal(err)
	}
	return pages.Of(all, pages.RedTeam)
}

// runbook returns the commands of the block that begins so, without their comments. It demands how many
// they are, because the test does what is between them.
func (w *world) runbook(begins string, commands int) (out [][]string) {
	w.Helper()
	for _, b := range securityBlocks(w) {
		if !strings.HasPrefix(b.Script(), begins) || !slices.Contains(runbooks, begins) {
			continue
		}
		for line := range strings.Lines(b.Script()) {
			command, _, _ := strings.Cut(line, "#")
			if words := strings.Fields(command); len(words) > 0 {
				out = append(out, words)
			}
		}
	}
	if len(out) != commands {
		w.Fatalf("the block that begins with %q has the commands %q, want %d", begins, out, commands)
	}
	return out
}

// does runs a command of a page on this machine, where its keys are in another directory than usual.
func (m *member) does(command []string) {
	m.w.Helper()
	if err := m.tries(command); err != nil {
		m.w.Fatal(err)
	}
}

func (m *member) tries(command []string) error {
	here := map[string]string{"rack2": "east", "pins.yaml": m.w.east.path("pins.yaml")}
	var args []string
	for _, word := range command[1:] { // without strait
		if to, known := here[word]; known {
			word = to
		}
		args = append(args, word)
	}
	return m.run(append(args, "--dir", m.dir)...)
}

// always watches the kernel of a daemon until the returned function is called, which fails the test if
// the kernel lacked one of the addresses at any time.
func (m *member) always(want ...netip.Addr) (end func()) {
	return m.watch(func(got []netip.Addr) error {
		if slices.ContainsFunc(want, func(a netip.Addr) bool { return slices.Contains(got, a) }) {
			return nil
		}
		return fmt.Errorf("%s balances over %v, without any of %v", m.cluster, got, want)
	})
}

// never is the opposite: the kernel had the address at some time.
func (m *member) never(bad netip.Addr) (end func()) {
	return m.watch(func(got []netip.Addr) error {
		if slices.Contains(got, bad) {
			return fmt.Errorf("%s balances over %v, and so over %s", m.cluster, got, bad)
		}
		return nil
	})
}

// watch looks at the backends in the kernel of a daemon until the returned function is called, which
// fails the test if check ever returned an error.
func (m *member) watch(check func(got []netip.Addr) error) (end func()) {
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan error, 1)
	go func() {
		for looks := 0; ; looks++ {
			got, err := m.backends()
			if err == nil {
				err = check(got)
			}
			if err != nil {
				done <- err
				return
			}
			select {
			case <-ctx.Done():
				if looks < 10 {
					err = fmt.Errorf("only %d looks", looks)
				}
				done <- err
				return
			case <-time.After(5 * time.Millisecond):
			}
		}
	}()
	return func() {
		m.w.Helper()
		cancel()
		if err := <-done; err != nil {
			m.w.Error(err)
		}
	}
}

// believes watches a daemon until the returned function is called, which fails the test if at any time the
// daemon, whenever it could be asked, did not believe a node of its own cluster.
func (m *member) believes(node string) (end func()) {
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan error, 1)
	go func() {
		looks := 0
		for ctx.Err() == nil {
			list, err := client.OnSocket(m.path("run/strait.sock")).Members(ctx)
			is := func(n api.Member) bool { return n.Cluster == m.cluster && n.Node == node && len(n.Keys) == 1 }
			if err == nil && !slices.ContainsFunc(list.Items, is) {
				done <- fmt.Errorf("%s/%s does not believe %s: %+v", m.cluster, m.node, node, list.Items)
				return
			}
			if err == nil {
				looks++
			}
			time.Sleep(10 * time.Millisecond)
		}
		if looks < 10 {
			done <- fmt.Errorf("only %d looks", looks)
		}
		close(done)
	}()
	return func() {
		m.w.Helper()
		cancel()
		if err := <-done; err != nil {
			m.w.Error(err)
		}
	}
}

// TestRotateRoot: a cluster whose root was stolen gets a new one. No Service is lost for a moment, and
// then no cluster has the old root.
func TestRotateRoot(t *testing.T) {
	if !inside(t) {
		return
	}
	w, f := newWorldOfThree(t)
	moved, followers := netip.MustParseAddr("10.2.1.8"), netip.MustParseAddr("10.2.3.7")
	page := w.runbook("strait clusterset rotate  ", 4)
	begin, accept, use, forget := page[0], page[1], page[2], page[3]
	copyPins := func() {
		w.Helper()
		text, err := os.ReadFile(w.east.path("pins.yaml"))
		w.must(err)
		f.write("pins.yaml", string(text))
		w.west.does(accept)
	}
	ends := []func(){w.west.always(pod(eastNumber), moved), w.west.always(followers), w.east.believes("n3"), f.believes("n1")}
	w.east.does(begin)
	copyPins()
	w.east.does(use)
	w.east.stop()
	w.east.start()
	// What east says with its new root is believed before west forgets the old one.
	w.east.write("manifests/serve.yaml", manifestServe(moved))
	w.west.balances(moved, followers)
	testutil.Eventually(w, patience, func() error { return w.east.tries(forget) })
	copyPins()
	w.east.write("manifests/serve.yaml", manifestServe(pod(eastNumber)))
	w.west.balances(pod(eastNumber), followers)
	for _, end := range ends {
		end()
	}

	key, now := authority.PrivateKey{9}, time.Now()
	statement, err := authority.Statement{
		Cluster: "east", Node: "n9", Key: key.Public(), Prefixes: []netip.Prefix{netip.MustParsePrefix("10.2.9.0/24")},
		NotBefore: now.Unix(), NotAfter: now.Add(time.Hour).Unix(),
	}.Sign(w.roots["east"])
	w.must(err)
	w.attack(origin("mallory", "n0"), nil,
		w.sealed(w.forge(origin("east", "n9"), 0, content("n9", eastNumber, netip.MustParseAddr("10.2.9.7"))), key, statement))
	w.west.says("STR2307", "cluster east", "another root")
	w.west.balances(pod(eastNumber), followers)
}

// TestEvict: a cluster that is alive, and may be hostile, is evicted. The others go on.
func TestEvict(t *testing.T) {
	if !inside(t) {
		return
	}
	w := newWorld(t, nil)
	w.west.does(w.runbook("strait clusterset evict", 1)[0])
	w.west.balances()
	w.west.says("STR2305", "cluster east", "not pinned")
	out, err := exec.Command(filepath.Join(w.programs, "strait"), "members", "--ascii", "--socket", w.west.path("run/strait.sock")).CombinedOutput()
	if err != nil || !regexp.MustCompile(`(?m)^east +FAIL refused`).Match(out) || !regexp.MustCompile(`(?m)^west +ok here .* yes +SHA256:`).Match(out) {
		t.Errorf("strait members: %v\n%s", err, out)
	}
	// The daemon stops, and starts again: it stays out.
	w.west.stop()
	w.west.start()
	w.west.says("STR2305", "cluster east")
	w.west.balances()
	w.west.clusterset("accept", w.east.path("pins.yaml"), "--yes")
	w.west.balances(pod(eastNumber))
	w.west.saysNothing()
}
