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
	"testing"
	"time"

	"strait.io/strait/clustermesh/authority"
	"strait.io/strait/daemon/api"
	"strait.io/strait/internal/testutil"
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
			list, err := api.NewClient(m.path("run/strait.sock")).Members(ctx)
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
// then the old root is nobody's.
func TestRotateRoot(t *testing.T) {
	if !inside(t) {
		return
	}
	w, f := newWorldOfThree(t)
	moved, followers := netip.MustParseAddr("10.2.1.8"), netip.MustParseAddr("10.2.3.7")
	copyPins := func() {
		w.Helper()
		text, err := os.ReadFile(w.east.path("pins.yaml"))
		w.must(err)
		f.write("pins.yaml", string(text))
		w.west.clusterset("accept", w.east.path("pins.yaml"), "--yes")
	}
	ends := []func(){w.west.always(pod(eastNumber), moved), w.west.always(followers), w.east.believes("n3"), f.believes("n1")}
	w.east.clusterset("rotate")
	copyPins()
	w.east.clusterset("rotate", "--finish")
	w.east.stop()
	w.east.start()
	// What east says with its new root is believed before west forgets the old one.
	w.east.write("manifests/serve.yaml", manifestServe(moved))
	w.west.balances(moved, followers)
	testutil.Eventually(w, patience, func() error {
		return w.east.run("clusterset", "rotate", "--finish", "--dir", w.east.dir)
	})
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
	w.west.clusterset("evict", "east", "--yes")
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
