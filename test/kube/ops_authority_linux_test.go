package kube

import (
	"context"
	"fmt"
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"strait.io/strait/internal/testutil"
	"strait.io/strait/test/kubelab"
	"strait.io/strait/test/pages"
)

// runbooks are the blocks of commands on the pages about keys and pins.
type runbooks struct {
	*testing.T
	o      *ops
	path   string
	blocks []pages.Block
	done   map[string]bool
}

func (o *ops) runbooks(t *testing.T) *runbooks {
	t.Helper()
	all, err := pages.Load(os.DirFS(root))
	must(t, err)
	return &runbooks{t, o, o.commands(t), pages.Of(all, pages.Authority), map[string]bool{}}
}

// does runs the one block that begins so, as it is on its page, and says yes.
func (r *runbooks) does(begins string) time.Duration {
	r.Helper()
	i := slices.IndexFunc(r.blocks, func(b pages.Block) bool { return strings.HasPrefix(b.Script(), begins) })
	if i < 0 {
		r.Fatalf("no page has a block that begins with %q", begins)
	}
	began := time.Now()
	must(r.T, r.o.answered(r.T, root, r.path, r.blocks[i].Script(), "yes\n"))
	r.Logf("%s took %s", r.blocks[i].Place(), time.Since(began).Round(100*time.Millisecond))
	r.done[r.blocks[i].Place()] = true
	return time.Since(began)
}

// testAuthority takes the clusters' keys and pins away, as if they had been joined before there
// were any, and gives them new ones by the commands on docs/kubernetes.md, as they are there. Calls
// go on meanwhile. Then each cluster knows the other by its root, and each node by its key. One
// evicts the other beside its running daemons, and takes it back. At last, the key of a node is
// revoked.
func testAuthority(t *testing.T, o *ops) {
	connect := []string{"clusterset", "connect", "--context", "c1", "--context", "c2", "--yes"}
	does := func(args ...string) time.Duration {
		t.Helper()
		began := time.Now()
		out, err := o.cliAll(t, args...)
		if err != nil {
			t.Fatalf("strait %v: %v\n%s", args, err, out)
		}
		t.Logf("strait %v took %s", args, time.Since(began).Round(100*time.Millisecond))
		return time.Since(began)
	}
	unpin := func() {
		for _, c := range []string{"c1", "c2"} {
			if out, err := o.cli(t, c, "upgrade", "--authority=off", "--set", "authority.sign=null", "--set", "authority.pin=null"); err != nil {
				t.Errorf("%s: %v: %s", c, err, out)
			}
			kubectl(t, c, "-n", "strait-system", "delete", "--ignore-not-found", "secret/strait-authority", "configmap/strait-pins", "configmap/strait-believe")
		}
	}
	unpin()
	defer func() { // c2n2 was revoked: begin anew
		unpin()
		does(connect...)
	}()
	if out, err := o.cliAll(t, connect[:len(connect)-1]...); err == nil {
		t.Errorf("without --yes and without an answer, connect says\n%s", out)
	}
	if out, err := o.cliAll(t, append(connect, "--nodes", "c1=198.51.100.0/24")...); err == nil || !regexp.MustCompile(`cluster c1 has a node at`).MatchString(out) {
		t.Errorf("ranges that miss a node: %v\n%s", err, out)
	}
	page := o.runbooks(t)
	load := o.startLoad(t, "authority")
	since := time.Now()
	page.does("strait clusterset connect --context c1 --context c2\n")
	for _, c := range []string{"c1", "c2"} {
		o.shows(t, c, `(?m)^c1 .* yes +SHA256:`, `(?m)^c2 .* yes +SHA256:`, `(?m)^  c1n1 .* SHA256:\S+ +in 2[34]h`, `(?m)^  c2n2 .* SHA256:\S+ +in `)
	}
	o.hasRoot(t, "c2", "c2n1", "c2n2")
	does(connect...) // again: nothing changes
	page.does("strait clusterset connect --context c1 --context c2 --pods")
	page.does("strait clusterset rotate c2")
	kubectl(t, "c2", "-n", "strait-system", "scale", "deployment/strait-leader", "--replicas=2")
	kubectl(t, "c2", "-n", "strait-system", "rollout", "status", "deployment/strait-leader", "--timeout=60s")
	o.shows(t, "c1", `(?m)^c2 .* yes +SHA256:`)
	if out, err := o.cliAll(t, "clusterset", "rotate", "--gossip-key", "--context", "c1"); err == nil || !strings.Contains(out, "c2 would lose the others") {
		t.Errorf("a rotation without c2: %v\n%s", err, out)
	}
	page.does("strait clusterset rotate --gossip-key")
	load.mustBeWhole(t, since)

	o.hasSlicesOf(t, "c1", "c2", true)
	if took := page.does("strait clusterset evict"); took > time.Minute {
		t.Errorf("evict took %s", took)
	}
	o.shows(t, "c1", `(?m)^c2 +\S+ refused`)
	o.hasSlicesOf(t, "c1", "c2", false)
	does(connect...)
	o.shows(t, "c1", `(?m)^c2 .* yes +SHA256:`, `(?m)^  c2n2 .* SHA256:`)
	o.hasSlicesOf(t, "c1", "c2", true)

	page.does("strait node revoke")
	if len(page.done) != len(page.blocks) {
		t.Errorf("of the blocks on the pages, only these were executed: %v", page.done)
	}
	testutil.Eventually(t, 30*time.Second, func() error {
		out, err := o.InCluster(t.Context(), "c1", kubelab.DaemonContainer, "/strait", "members", "--ascii")
		if err == nil && strings.Contains(out, "c2n2") {
			err = fmt.Errorf("c1 still believes c2n2, whose key was revoked in c2:\n%s", out)
		}
		return err
	})
}

// hasRoot demands that the root of a cluster is on the nodes that run strait-leader, in no daemon's pod, and
// that these nodes say that they have it; and that it goes from a node with its pod. One node has it then,
// and the other must ask.
func (o *ops) hasRoot(t *testing.T, cluster, first, second string) {
	t.Helper()
	for _, node := range []string{first, second} {
		if got := o.inStrait(t, node, "members", "-o", "json"); strings.Count(got, `"hasRoot": true`) < 2 {
			t.Errorf("on %s, strait members says\n%s", node, got)
		}
		out, err := o.OnNode(t.Context(), node, "sh", "-c", "find /var/lib/kubelet/pods -name root.key")
		if found := lines(out); err != nil || len(found) == 0 || slices.ContainsFunc(found, func(s string) bool { return !strings.Contains(s, "/lent/") }) {
			t.Errorf("%s: these pods have the root, want only the leader's: %v %v", node, found, err)
		}
		out, err = o.OnNode(t.Context(), node, "sh", "-c", "stat -c %a /run/strait/leader /run/strait/leader/*/root.key")
		if modes := strings.Join(lines(out), " "); err != nil || modes != "700 600" {
			t.Errorf("%s: what is lent there has modes %q, %v", node, modes, err)
		}
	}
	kubectl(t, cluster, "-n", "strait-system", "scale", "deployment/strait-leader", "--replicas=1")
	testutil.Eventually(t, 40*time.Second, func() error {
		has := 0
		for _, node := range []string{first, second} {
			if _, err := o.OnNode(t.Context(), node, "sh", "-c", "ls /run/strait/leader/*/root.key"); err == nil {
				has++
			}
		}
		if has != 1 {
			return fmt.Errorf("%d nodes have the root, want 1", has)
		}
		return nil
	})
	o.shows(t, cluster, `(?m)^  `+cluster+`n\d .* SHA256:\S+ +in 2[34]h\S* +yes`, `(?m)^  `+cluster+`n\d .* SHA256:\S+ +in 2[34]h\S* +- `)
}

// hasSlicesOf waits until a cluster's API server has EndpointSlices of another cluster, or none.
func (o *ops) hasSlicesOf(t *testing.T, cluster, other string, want bool) {
	t.Helper()
	testutil.Eventually(t, 30*time.Second, func() error {
		out, err := o.Kubectl(t.Context(), cluster, nil, "get", "endpointslices", "-A", "-o", "name", "-l", "multicluster.kubernetes.io/source-cluster="+other)
		if err == nil && (out != "") != want {
			err = fmt.Errorf("%s has these EndpointSlices of %s, want some: %v\n%s", cluster, other, want, out)
		}
		return err
	})
}

// shows waits until strait members on a node of a cluster shows lines.
func (o *ops) shows(t *testing.T, cluster string, lines ...string) {
	t.Helper()
	testutil.Eventually(t, 30*time.Second, func() error { return o.showing(t.Context(), cluster, lines...) })
}

// showing returns an error unless it shows them now.
func (o *ops) showing(ctx context.Context, cluster string, lines ...string) error {
	out, err := o.InCluster(ctx, cluster, kubelab.DaemonContainer, "/strait", "members", "--ascii")
	if err != nil {
		return err
	}
	for _, want := range lines {
		if !regexp.MustCompile(want).MatchString(out) {
			return fmt.Errorf("%s: no line of strait members is %s:\n%s", cluster, want, out)
		}
	}
	return nil
}
