package kube

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"strait.io/strait/internal/testutil"
	"strait.io/strait/test/pages"
)

// questions are the commands of docs/questions.md in their order: with which exit code each ends, and
// what the answer must have, which is the reason.
var questions = []struct {
	command string
	exit    int
	wants   []string
}{
	{"check", 1, []string{`(?m)^✗ the tunnels carry packets$`, `STR420\d tunnel to c2/c2n2: .*\n +on +c1/.*\n +try +\S`}},
	{"explain", 0, []string{`new connections go to clusterset 100 % \(c2\)`, `(?m)^(node|zone|region|cluster) .* c1/c1n1 .*✗ pod is not ready`,
		`(?m)^clusterset .* c2/c2n1 .*ready, in the nearest tier`}},
	{"flows", 0, []string{`(?m)^shop/caller \(curl\) +c1/c1n1 +shop/cart:http +cart-c2n1 +c2/c2n1 +1 `}},
	{"timeline", 0, []string{`(?m)^\d\d:\d\d:\d\d .*shop/cart .*1 endpoint stopped being ready in c1 .* 1 endpoint withdrawn`}},
	{"what-if", 0, []string{`shop/cart .* clusterset 100 % \(c2\) +✗ nowhere`}},
	{"ping", 1, []string{`✗ .*UDP \d+ is blocked between c1/\S+ and c2/c2n2`, `try +\S`}},
	{"bundle", 0, []string{`strait-\d+T\d+Z\.tar\.gz`}},
}

// cartOf is a Service of which one pod, on a node, is ready while /tmp/ready is there.
const cartOf = `
apiVersion: v1
kind: Service
metadata: {name: cart}
spec: {selector: {app: cart}, ports: [{name: http, port: 80, targetPort: 8080}]}
---
apiVersion: multicluster.x-k8s.io/v1beta1
kind: ServiceExport
metadata: {name: cart}
---
apiVersion: v1
kind: Pod
metadata: {name: cart-%[1]s, labels: {app: cart}}
spec:
  nodeName: %[1]s
  terminationGracePeriodSeconds: 0
  containers:
  - {name: serve, image: "localhost/agnhost:1", args: [netexec, --http-port=8080]}
  - name: shell
    image: localhost/shell:1
    command: [sh, -c, "touch /tmp/ready; sleep infinity"]
    readinessProbe: {exec: {command: [test, -e, /tmp/ready]}, periodSeconds: 1, failureThreshold: 1}
`

// testQuestions: a newcomer who has the page docs/questions.md and two contexts, and no access to nodes
// and pods, gets the answer to each question by one command, as it is written.
func testQuestions(t *testing.T, o *ops) {
	at := o.cartMoves(t)
	o.blockTunnel(t, "c2n2")
	config, path, dir := o.looker(t), o.commands(t), t.TempDir()
	all, err := pages.Load(os.DirFS(root))
	must(t, err)
	blocks := pages.Of(all, pages.Questions)
	if len(blocks) != len(questions) {
		t.Fatalf("the page has %d commands, want %d", len(blocks), len(questions))
	}
	for i, q := range questions {
		script := strings.ReplaceAll(blocks[i].Script(), "14:02", at.Format("15:04"))
		if !strings.Contains(script, q.command) || strings.Count(script, "\n") != 1 {
			t.Errorf("%s: %q is not the one command %s", blocks[i].Place(), script, q.command)
			continue
		}
		testutil.Eventually(t, 60*time.Second, func() error {
			cmd := exec.CommandContext(t.Context(), "bash", "-e", "-u", "-o", "pipefail", "-c", script)
			cmd.Dir = dir
			cmd.Env = append(os.Environ(), "PATH="+path+":"+os.Getenv("PATH"), "KUBECONFIG="+config)
			out, _ := cmd.CombinedOutput()
			if code := cmd.ProcessState.ExitCode(); code != q.exit {
				return fmt.Errorf("%s ends with %d, want %d\n%s", script, code, q.exit, out)
			}
			for _, want := range q.wants {
				if !regexp.MustCompile(want).Match(out) {
					return fmt.Errorf("%s\nhas not %q:\n%s", script, want, out)
				}
			}
			t.Logf("%s%s", script, out)
			return nil
		})
	}
	if files, err := filepath.Glob(filepath.Join(dir, "strait-*.tar.gz")); err != nil || len(files) == 0 { // one for each time it was tried
		t.Errorf("the bundles in the folder: %v %v", files, err)
	}
}

// cartMoves has both clusters export shop/cart, and the pod in c1 stop to be ready. A pod in c1 then
// calls c2's. It returns a moment before that, to the minute.
func (o *ops) cartMoves(t *testing.T) (at time.Time) {
	t.Helper()
	for _, c := range []string{"c1", "c2"} {
		kubectl(t, c, "create", "namespace", "shop")
		t.Cleanup(func() {
			if _, err := o.Kubectl(context.Background(), c, nil, "delete", "namespace", "shop"); err != nil {
				t.Error(err)
			}
		})
		_, err := o.Kubectl(t.Context(), c, fmt.Appendf(nil, cartOf, c+"n1"), "-n", "shop", "apply", "-f", "-")
		must(t, err)
		kubectl(t, c, "-n", "shop", "wait", "pod/cart-"+c+"n1", "--for=condition=Ready", "--timeout=90s")
	}
	ip := o.vipIn(t, "c1", "shop", "cart")
	o.goesTo(t, "c1")
	at = time.Now()
	kubectl(t, "c1", "-n", "shop", "exec", "cart-c1n1", "-c", "shell", "--", "rm", "/tmp/ready")
	o.goesTo(t, "c2")
	caller := fmt.Sprintf(`{apiVersion: v1, kind: Pod, metadata: {name: caller}, spec: {nodeName: c1n1, terminationGracePeriodSeconds: 0,
  containers: [{name: shell, image: "localhost/shell:1", command: [sh, -c, "sleep 1000 | curl -s telnet://%s:80"]}]}}`, ip)
	_, err := o.Kubectl(t.Context(), "c1", []byte(caller), "-n", "shop", "apply", "-f", "-")
	must(t, err)
	kubectl(t, "c1", "-n", "shop", "wait", "pod/caller", "--for=condition=Ready", "--timeout=90s")
	return at
}

// goesTo waits until connections of c1 to shop/cart go to a cluster.
func (o *ops) goesTo(t *testing.T, cluster string) {
	t.Helper()
	testutil.Eventually(t, 60*time.Second, func() error {
		out, err := o.cli(t, "c1", "explain", "shop/cart")
		if err == nil && !regexp.MustCompile(`new connections go to .*100 % \(`+cluster+`\)`).MatchString(out) {
			err = fmt.Errorf("connections do not go to %s:\n%s", cluster, out)
		}
		return err
	})
}

// blockTunnel drops the tunnel's packets that come to a node, until the test ends.
func (o *ops) blockTunnel(t *testing.T, node string) {
	t.Helper()
	rule := []string{"INPUT", "-p", "udp", "--dport", "51820", "-j", "DROP"}
	o.enter(t, node, append([]string{"iptables", "-w", "-I"}, rule...), append([]string{"iptables", "-w", "-D"}, rule...))
}
