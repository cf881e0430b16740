package kube

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"strait.io/strait/internal/testutil"
	"strait.io/strait/test/kubelab"
	"strait.io/strait/test/pages"
)

// pagesInOrder are the pages whose commands a new user runs on clusters, in the order in which they do.
var pagesInOrder = []string{"README.md", "docs/services.md", "docs/metrics.md", "docs/versions.md", "docs/kubernetes.md"}

// root is the repository, where a user runs the commands.
const root = "../.."

// testPages does what the pages tell a new user to do on two clusters, from install to uninstall,
// as they are written. Blocks that say the same are run once.
func testPages(t *testing.T, o *ops) {
	// A lab that is kept gets back what it had. Another one goes with this test.
	if sharedOf(t).kept {
		defer func() {
			o.uninstallAll(t, "--force") // c1 has none any more if the pages worked
			for _, c := range []string{"c1", "c2"} {
				kubectl(t, c, "delete", "namespace", "shop", "--ignore-not-found", "--wait=false")
			}
			must(t, o.InstallStrait(t.Context(), o.strait))
		}()
	}
	o.uninstallAll(t)
	t.Run("Preflight", func(t *testing.T) { testPreflight(t, o) })

	all, err := pages.Load(os.DirFS(root))
	must(t, err)
	path, ran := o.commands(t), map[string]bool{}
	done := 0
	for _, page := range pagesInOrder {
		for _, b := range pages.Of(all, pages.Kube) {
			if b.Page != page {
				continue
			}
			done++
			if ran[b.Script()] {
				continue
			}
			ran[b.Script()] = true
			start := time.Now()
			// The clusters agree in a moment, for which a person waits too.
			testutil.Eventually(t, time.Minute, func() error { return o.script(t, path, b.Script()) })
			t.Logf("%s took %.1f s", b.Place(), time.Since(start).Seconds())
		}
	}
	if want := len(pages.Of(all, pages.Kube)); done != want {
		t.Errorf("executed %d blocks of %d: a page is missing in pagesInOrder", done, want)
	}
}

// testPagesThatJoin does what the pages about other systems say to join clusters. These are joined,
// so no daemon restarts. Their names on the pages stand for c1 and c2. Blocks that say the same
// then are run once.
func testPagesThatJoin(t *testing.T, o *ops) {
	names := strings.NewReplacer("us-east", "c1", "eu-central", "c2", "eu-west", "c2", "member1", "c1", "member2", "c2")
	kubectl(t, "c2", "create", "namespace", "shop")
	defer func() { kubectl(t, "c2", "delete", "namespace", "shop", "--wait=false") }()
	daemons := func() string { return o.pods(t, "c1") + o.pods(t, "c2") }
	all, err := pages.Load(os.DirFS(root))
	must(t, err)
	path, before, ran := o.commands(t), daemons(), map[string]bool{}
	for _, b := range pages.Of(all, pages.Joined) {
		script := names.Replace(b.Script())
		if ran[script] {
			continue
		}
		ran[script] = true
		start := time.Now()
		must(t, o.script(t, path, script))
		t.Logf("%s took %.1f s", b.Place(), time.Since(start).Seconds())
	}
	if after := daemons(); len(ran) < 3 || after != before {
		t.Errorf("%d scripts ran, and the pods of strait were %q, then %q", len(ran), before, after)
	}
}

// uninstallAll takes strait from both clusters at once. One after the other, the second would wait a
// minute for the first to hear that it leaves.
func (o *ops) uninstallAll(t *testing.T, more ...string) {
	t.Helper()
	start := time.Now()
	o.both(t, func(c string) (string, error) { return o.cli(t, c, append([]string{"uninstall"}, more...)...) })
	t.Logf("uninstall from both took %.1f s", time.Since(start).Seconds())
}

// both runs a command in both clusters at once.
func (o *ops) both(t *testing.T, command func(cluster string) (string, error)) {
	t.Helper()
	var wg sync.WaitGroup
	for _, c := range []string{"c1", "c2"} {
		wg.Go(func() {
			if out, err := command(c); err != nil {
				t.Errorf("%s: %v\n%s", c, err, out)
			}
		})
	}
	if wg.Wait(); t.Failed() {
		t.FailNow()
	}
}

// commands is a folder with strait and kubectl. The lab's nodes need settings and an image, which a
// user would give once.
func (o *ops) commands(t *testing.T) string {
	dir := t.TempDir()
	must(t, os.WriteFile(filepath.Join(dir, "strait"), fmt.Appendf(nil, `#!/bin/sh
if [ "$1" = install ]; then
  shift
  set -- install --image %s %s "$@"
fi
exec %s "$@"
`, o.strait.Image, strings.Join(kubelab.Settings, " "), o.strait.CLI), 0o755))
	must(t, os.Symlink(filepath.Join(o.Programs, "kubectl"), filepath.Join(dir, "kubectl")))
	return dir
}

func (o *ops) script(t *testing.T, path, text string) error {
	return o.scriptIn(t, root, path, text)
}

func (o *ops) scriptIn(t *testing.T, dir, path, text string) error {
	return o.answered(t, dir, path, text, "")
}

// answered is scriptIn for a script that asks.
func (o *ops) answered(t *testing.T, dir, path, text, answer string) error {
	cmd := exec.CommandContext(t.Context(), "bash", "-e", "-u", "-o", "pipefail", "-c", text)
	cmd.Dir, cmd.Stdin = dir, strings.NewReader(answer)
	cmd.Env = append(os.Environ(), "PATH="+path+":"+os.Getenv("PATH"), "KUBECACHEDIR="+o.KubectlCache(), "KUBECONFIG="+o.Kubeconfig())
	out, err := cmd.CombinedOutput()
	if err != nil {
		return fmt.Errorf("%w\n%s\n%s", err, text, out)
	}
	return nil
}
