package kube

import (
	"errors"
	"os/exec"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"strait.io/strait/internal/problem"
	"strait.io/strait/internal/testutil"
	"strait.io/strait/test/kubelab"
	"strait.io/strait/test/kubelab/apiserver"
)

// beforeProofs is the last commit in which memberlist's word counted where clusters are pinned.
const beforeProofs = "748bed74a3c722193a1f03fbf69e6f2a254dd909"

// testUpgrade upgrades clusters of that version, first without pins and then with them, as
// docs/kubernetes.md says. Calls go on meanwhile, and until the clusters have pinned each other. No daemon
// reports what is not true, and no alert fires because of it.
func testUpgrade(t *testing.T, o *ops) {
	old := &ops{o.Lab, buildOld(t, beforeProofs)}
	must(t, o.Import(t.Context(), old.strait.ImageFile))
	for _, pin := range []string{"false", "true"} {
		t.Run("pin="+pin, func(t *testing.T) { o.upgrades(t, old, pin) })
	}
}

// upgrades installs an old version, connects its clusters with or without pins, and upgrades them.
func (o *ops) upgrades(t *testing.T, old *ops, pin string) {
	does := func(by *ops, args ...string) {
		t.Helper()
		if out, err := by.cliAll(t, args...); err != nil {
			t.Fatalf("strait %v: %v\n%s", args, err, out)
		}
	}
	o.uninstallAll(t)
	o.both(t, func(c string) (string, error) { return old.install(t, c, c, "--set", everyAddress) })
	connect := []string{"clusterset", "connect", "--context", "c1", "--context", "c2", "--yes"}
	does(old, append(connect, "--pin="+pin)...)
	load := o.startLoad(t, "upgrade-"+pin)
	o.watchAlerts(t)
	r := o.startRecord(t)
	since, upgraded := time.Now(), map[string]time.Time{}
	for _, c := range []string{"c1", "c2"} {
		r.begin("upgrade of " + c)
		upgrade := append([]string{"upgrade", "--context", c, "--image", o.strait.Image}, kubelab.Settings...)
		o.foretells(t, true, upgrade)
		does(o, upgrade...)
		upgraded[c] = time.Now()
		o.foretells(t, false, upgrade)
	}
	r.begin("connect")
	does(o, connect...)
	for _, c := range []string{"c1", "c2"} {
		o.shows(t, c, `(?m)^c1 .* yes +SHA256:`, `(?m)^c2 .* yes +SHA256:`, `(?m)^  c2n2 .* SHA256:\S+ +in `)
	}
	load.mustBeWhole(t, since)
	// Until the clusters pin each other, every holder of the key is believed; and there are two versions.
	// Uninstalling took the zone out of CoreDNS. What daemons that restart report for a moment is only logged.
	// The old version reports a seed that restarts at once.
	unpinned := pin == "false"
	r.mustBeTrue(t, func(s sighting) bool {
		byOld := s.first.Before(upgraded[s.node[:len("c1")]])
		return unpinned && s.Code == problem.EverybodyTrusted || s.Code == problem.ZoneNotServed || byOld && s.Code == problem.SeedSilent ||
			s.last.Sub(s.first) < 5*time.Second
	})
	o.mustNotHaveFired(t, since, "StraitVersionSkew", "StraitKeyholdersBelieved")
}

// foretells checks what strait upgrade --check says before an upgrade that replaces the daemons'
// pods, or after it, when nothing is left to do; and that it names a value that the chart does not
// take.
func (o *ops) foretells(t *testing.T, replaces bool, upgrade []string) {
	t.Helper()
	check := append(slices.Clone(upgrade), "--check")
	out, _ := o.cliAll(t, check...) // the exit code is that of what the daemons report, too
	if regexp.MustCompile(`(?m)^ +changed +DaemonSet strait-system/strait \(its pods are replaced\)$`).MatchString(out) != replaces ||
		!strings.Contains(out, "✓ the chart takes the values, and the API server the objects") || !strings.Contains(out, "✓ every daemon answers") {
		t.Errorf("strait upgrade --check; that pods are replaced should be %v:\n%s", replaces, out)
	}
	out, err := o.cliAll(t, append(check, "--set", "mesh.mode=on")...)
	if exit := new(exec.ExitError); !errors.As(err, &exit) || exit.ExitCode() != 1 || !strings.Contains(out, "mesh.mode") {
		t.Errorf("strait upgrade --check --set mesh.mode=on: %v\n%s", err, out)
	}
}

// buildOld builds strait as of a commit of this source's history.
func buildOld(t *testing.T, commit string) kubelab.Strait {
	t.Helper()
	source := testutil.SourceAt(t, apiserver.Options(t).Source, commit)
	s, err := kubelab.BuildStrait(t.Context(), source, t.TempDir())
	must(t, err)
	return s
}
