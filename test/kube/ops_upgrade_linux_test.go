package kube

import (
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"testing"
	"time"

	"strait.io/strait/test/kubelab"
	"strait.io/strait/test/kubelab/apiserver"
)

// beforeKeys is the last commit without keys and pins.
const beforeKeys = "fc1e686b229ada50469d46df986c29cf9cb4b444"

// testUpgrade upgrades clusters from before there were keys, and gives them keys and pins, as docs/kubernetes.md says.
// Calls go on meanwhile.
func testUpgrade(t *testing.T, o *ops) {
	old := &ops{o.Lab, buildOld(t, beforeKeys)}
	must(t, o.Import(t.Context(), old.strait.ImageFile))
	does := func(by *ops, args ...string) {
		t.Helper()
		if out, err := by.cliAll(t, args...); err != nil {
			t.Fatalf("strait %v: %v\n%s", args, err, out)
		}
	}
	for _, c := range []string{"c1", "c2"} {
		does(o, "uninstall", "--context", c)
	}
	for _, c := range []string{"c1", "c2"} {
		does(old, append([]string{"install", "--context", c, "--cluster", c, "--image", old.strait.Image}, oldSettings()...)...)
	}
	connect := []string{"clusterset", "connect", "--context", "c1", "--context", "c2"}
	does(old, connect...)
	load := o.startLoad(t, "upgrade")
	since := time.Now()
	for _, c := range []string{"c1", "c2"} {
		does(o, append([]string{"upgrade", "--context", c, "--image", o.strait.Image}, kubelab.Settings...)...)
	}
	does(o, append(connect, "--yes")...)
	for _, c := range []string{"c1", "c2"} {
		o.shows(t, c, `(?m)^c1 .* yes +SHA256:`, `(?m)^c2 .* yes +SHA256:`, `(?m)^  c2n2 .* SHA256:\S+ +in `)
	}
	load.mustBeWhole(t, since)
}

// oldSettings are those settings of the lab that the version beforeKeys has.
func oldSettings() []string {
	i := slices.IndexFunc(kubelab.Settings, func(s string) bool { return s == "config.source.kubernetes.drainCordoned=true" })
	return slices.Delete(slices.Clone(kubelab.Settings), i-1, i+1)
}

// buildOld builds strait as of a commit of this source's history.
func buildOld(t *testing.T, commit string) kubelab.Strait {
	t.Helper()
	source := filepath.Join(t.TempDir(), "source")
	must(t, os.Mkdir(source, 0o755))
	archive := exec.CommandContext(t.Context(), "sh", "-c", "git archive "+commit+" | tar -x -C "+source)
	archive.Dir = apiserver.Options(t).Source
	if exec.CommandContext(t.Context(), "git", "-C", archive.Dir, "cat-file", "-e", commit).Run() != nil {
		t.Skip("the source has no history: this test builds the version before there were keys from it")
	}
	if out, err := archive.CombinedOutput(); err != nil {
		t.Fatalf("read the source of %s: %v\n%s", commit, err, out)
	}
	s, err := kubelab.BuildStrait(t.Context(), source, t.TempDir())
	must(t, err)
	return s
}
