package kube

import (
	"context"
	"fmt"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"strait.io/strait/internal/problem"
	"strait.io/strait/internal/testutil"
)

// fault is something that goes wrong in the objects of a cluster, as people or programs bring it about.
type fault struct {
	name string
	// code is that of the one problem that all faces show, and check the title of the check that fails.
	code  problem.Code
	check string
	// inject returns once the fault is there. What it changed in the lab goes when the test ends.
	inject func(*testing.T, *ops)
	// cure does what the problem says, whose words it gets: as they are, and each command in them.
	cure func(t *testing.T, o *ops, try string)
}

var faults = []fault{
	{"the Corefile is overwritten", problem.ZoneNotServed, "no problems with DNS", corefileOverwritten, func(t *testing.T, o *ops, try string) { o.doAs(t, try) }},
	{"CoreDNS is set back to an old version", problem.CoreDNSOld, "no problems with DNS", coreDNSOld, coreDNSUpgraded},
	{"an export without a Service", problem.ExportWithoutService, "no problems with objects", exportAlone, serviceCreated},
	{"exports that disagree", problem.ExportConflict, "no problems with clusters and nodes", exportsDisagree, exportsAgree},
}

// seenWithin is how soon all faces must show a fault. On a machine with nothing else to do, that
// takes less than ten seconds, as the test's log says; while other labs run, a command alone can
// take as long.
const seenWithin = time.Minute

// testFaults: each fault is named by strait check, strait status, the metrics and the page, with
// nothing else beside it. Its cure, as it is written there, heals all of them.
func testFaults(t *testing.T, o *ops) {
	f := o.startFaces(t)
	for _, x := range faults {
		t.Run(x.name, func(t *testing.T) {
			f.mustBeWell(t)
			x.inject(t, o)
			since := time.Now()
			var try string
			for _, face := range f.all() {
				testutil.Eventually(t, time.Until(since.Add(seenWithin)), func() (err error) {
					got, err := face.look(t)
					if err == nil {
						err = got.only(x.code)
					}
					if err == nil && got.check != "" && got.check != x.check {
						err = fmt.Errorf("it is a matter of %q, want %q", got.check, x.check)
					}
					if got.try != "" {
						try = got.try
					}
					if err != nil {
						err = fmt.Errorf("%s: %w", face.name, err)
					}
					return err
				})
				t.Logf("%s shows %s after %.1f s", face.name, x.code, time.Since(since).Seconds())
			}
			x.cure(t, o, try)
			since = time.Now()
			f.mustBeWell(t)
			t.Logf("all is well %.1f s after the cure: %s", time.Since(since).Seconds(), try)
		})
	}
}

var commandForContext = regexp.MustCompile(`strait (\w[\w -]*) --context CONTEXT`)

// doAs runs the command in the words of a problem, in c1.
func (o *ops) doAs(t *testing.T, try string) {
	t.Helper()
	m := commandForContext.FindStringSubmatch(try)
	if m == nil {
		t.Fatalf("%q names no command", try)
	}
	if out, err := o.cli(t, "c1", strings.Fields(m[1])...); err != nil {
		t.Fatalf("strait %s: %v\n%s", m[1], err, out)
	}
}

// plainCorefile is that of c1 as it was before strait changed it.
func (o *ops) plainCorefile(t *testing.T) string {
	t.Helper()
	out, err := o.cli(t, "c1", "dns", "setup", "--undo", "--dry-run")
	if err != nil || strings.Contains(out, "multicluster") || !strings.Contains(out, "kubernetes cluster.local") {
		t.Fatalf("the Corefile before strait changed it: %v\n%s", err, out)
	}
	return out
}

// corefileOverwritten does what an upgrade of a cluster does whose installer owns the ConfigMap.
func corefileOverwritten(t *testing.T, o *ops) {
	writeCorefile(t, o.plainCorefile(t))
	kubectl(t, "c1", "-n", "kube-system", "rollout", "restart", "deployment/coredns")
	coreDNS(t)
}

// oldCoreDNS and newCoreDNS are tags of the lab's CoreDNS: strait knows a version by the image's tag.
const oldCoreDNS, newCoreDNS = "localhost/coredns:v1.11.3", "localhost/coredns:v1.12.2"

// coreDNSOld replaces CoreDNS by an image of an old version, with a Corefile with which that starts.
func coreDNSOld(t *testing.T, o *ops) {
	before := kubectl(t, "c1", "-n", "kube-system", "get", "deployment/coredns", "-o", "jsonpath={.spec.template.spec.containers[0].image}")
	for _, node := range []string{"c1n1", "c1n2"} {
		for _, tag := range []string{oldCoreDNS, newCoreDNS} {
			if out, err := o.OnNode(t.Context(), node, filepath.Join(o.Programs, "ctr"), "-n", "k8s.io", "images", "tag", "--force", before, tag); err != nil {
				t.Fatalf("%v: %s", err, out)
			}
		}
	}
	t.Cleanup(func() {
		for _, args := range []string{"set image deployment/coredns coredns=" + strings.TrimSpace(before), "rollout status deployment/coredns --timeout=90s"} {
			if _, err := o.Kubectl(context.Background(), "c1", nil, append([]string{"-n", "kube-system"}, strings.Fields(args)...)...); err != nil {
				t.Error(err)
			}
		}
	})
	writeCorefile(t, o.plainCorefile(t))
	kubectl(t, "c1", "-n", "kube-system", "set", "image", "deployment/coredns", "coredns="+oldCoreDNS)
	coreDNS(t)
}

// coreDNSUpgraded: before the upgrade, strait refuses what the second part of the cure is.
func coreDNSUpgraded(t *testing.T, o *ops, try string) {
	m := regexp.MustCompile(`upgrade CoreDNS to (\S+) or newer`).FindStringSubmatch(try)
	if m == nil || !strings.HasSuffix(newCoreDNS, "v"+m[1]) {
		t.Fatalf("the cure is %q, want an upgrade to that of %s", try, newCoreDNS)
	}
	if out, err := o.cli(t, "c1", "dns", "setup"); err == nil || !strings.Contains(out, "older than "+m[1]) {
		t.Errorf("dns setup of an old CoreDNS: %v\n%s", err, out)
	}
	kubectl(t, "c1", "-n", "kube-system", "set", "image", "deployment/coredns", "coredns="+newCoreDNS)
	o.doAs(t, try)
}

const loneExport = `
apiVersion: multicluster.x-k8s.io/v1beta1
kind: ServiceExport
metadata: {name: fault-alone}
`

const aloneService = `
apiVersion: v1
kind: Service
metadata: {name: fault-alone}
spec: {selector: {app: ops-c1}, ports: [{port: 80, targetPort: 8080}]}
`

func exportAlone(t *testing.T, o *ops) {
	must(t, o.Apply(t.Context(), "c1", loneExport))
	o.removeLater(t, "c1", "serviceexport/fault-alone", "service/fault-alone")
}

func serviceCreated(t *testing.T, o *ops, try string) {
	if !strings.HasPrefix(try, "create Service default/fault-alone,") {
		t.Fatalf("the cure is %q", try)
	}
	must(t, o.Apply(t.Context(), "c1", aloneService))
}

// disagreeing is an exported Service with another affinity in each cluster.
const disagreeing = `
apiVersion: v1
kind: Service
metadata: {name: fault-disagree}
spec: {selector: {app: ops-%[1]s}, sessionAffinity: %[2]s, ports: [{port: 80, targetPort: 8080}]}
---
apiVersion: multicluster.x-k8s.io/v1beta1
kind: ServiceExport
metadata: {name: fault-disagree}
`

func exportsDisagree(t *testing.T, o *ops) {
	for cluster, affinity := range map[string]string{"c1": "None", "c2": "ClientIP"} {
		must(t, o.Apply(t.Context(), cluster, fmt.Sprintf(disagreeing, cluster, affinity)))
		o.removeLater(t, cluster, "serviceexport/fault-disagree", "service/fault-disagree")
	}
}

func exportsAgree(t *testing.T, o *ops, try string) {
	if !strings.HasPrefix(try, "make the Services agree in every exporting cluster") {
		t.Fatalf("the cure is %q", try)
	}
	must(t, o.Apply(t.Context(), "c2", fmt.Sprintf(disagreeing, "c2", "None")))
}

// removeLater deletes objects when the test ends.
func (o *ops) removeLater(t *testing.T, cluster string, objects ...string) {
	t.Cleanup(func() {
		_, err := o.Kubectl(context.Background(), cluster, nil, append([]string{"delete", "--ignore-not-found", "--wait=false"}, objects...)...)
		if err != nil {
			t.Error(err)
		}
	})
}

// only returns an error unless one code alone is shown.
func (s shown) only(code problem.Code) error {
	if !slices.Equal(s.codes, []problem.Code{code}) {
		return fmt.Errorf("it shows %q, want %s alone", s.codes, code)
	}
	return nil
}
