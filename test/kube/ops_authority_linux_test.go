package kube

import (
	"fmt"
	"os/exec"
	"path/filepath"
	"regexp"
	"testing"
	"time"

	"strait.io/strait/internal/testutil"
)

// testAuthority gives the clusters keys and pins as docs/kubernetes.md says. Calls go on meanwhile. Then each cluster knows
// the other by its root, and each node by its key.
func testAuthority(t *testing.T, o *ops) {
	keys := t.TempDir()
	dir := func(cluster string) string { return filepath.Join(keys, cluster) }
	clusterset := func(args ...string) {
		t.Helper()
		if out, err := exec.CommandContext(t.Context(), o.strait.CLI, append([]string{"clusterset"}, args...)...).CombinedOutput(); err != nil {
			t.Fatalf("strait clusterset %v: %v\n%s", args, err, out)
		}
	}
	place := func(i int) []string {
		c := o.Topology.Clusters[i]
		pods := fmt.Sprintf("10.1%d.0.0/16", c.Index)
		return []string{"--id", c.Name, "--pods", pods, "--nodes", c.Underlay.Masked().String()}
	}
	clusterset(append([]string{"init", "--dir", dir("c1")}, place(0)...)...)
	clusterset(append([]string{"invite", "--dir", dir("c1"), "--out", filepath.Join(keys, "invitation"), "--yes"}, place(1)...)...)
	clusterset("accept", "--dir", dir("c2"), filepath.Join(keys, "invitation"), "--yes")
	for _, c := range []string{"c1", "c2"} {
		kubectl(t, c, "-n", "strait-system", "create", "secret", "generic", "strait-authority",
			"--from-file="+filepath.Join(dir(c), "root.key"), "--from-file="+filepath.Join(dir(c), "pins.yaml"))
		defer kubectl(t, c, "-n", "strait-system", "delete", "secret", "strait-authority")
	}
	set := func(values ...string) {
		t.Helper()
		for _, c := range []string{"c1", "c2"} {
			args := []string{"upgrade"}
			for _, v := range values {
				args = append(args, "--set", v)
			}
			if out, err := o.cli(t, c, args...); err != nil {
				t.Fatalf("%s: %v: %s", c, err, out)
			}
		}
	}
	defer set("authority.sign=null", "authority.pin=null")
	load := o.startLoad(t, "authority")
	since := time.Now()
	set("authority.sign=true")
	set("authority.pin=true")
	for _, c := range []string{"c1", "c2"} {
		testutil.Eventually(t, 30*time.Second, func() error {
			out, err := o.Kubectl(t.Context(), c, nil, "-n", "strait-system", "exec", "ds/strait", "-c", "straitd", "--", "/strait", "members", "--ascii")
			if err != nil {
				return err
			}
			for _, want := range []string{`(?m)^c1 .* yes +SHA256:`, `(?m)^c2 .* yes +SHA256:`, `(?m)^  c1n1 .* SHA256:\S+ +in 2[34]h`, `(?m)^  c2n2 .* SHA256:\S+ +in `} {
				if !regexp.MustCompile(want).MatchString(out) {
					return fmt.Errorf("%s: no line of strait members is %s:\n%s", c, want, out)
				}
			}
			return nil
		})
	}
	load.mustBeWhole(t, since)
}
