package leader

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"strait.io/strait/internal/testutil"
)

// TestLend: a daemon with the account that only reads writes nothing, until a pod of strait-leader lends it a
// token. When the pod goes, it gives up the Lease. What a pod left that was killed lets no daemon lead.
func TestLend(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "leader")
	w := newWorld(t, tree{"leaderDir": dir}, func(config tree) {
		k := config["source"].(tree)["kubernetes"].(tree)
		file := k["kubeconfig"].(string)
		text, err := os.ReadFile(file)
		if err == nil {
			err = os.WriteFile(file, []byte(strings.ReplaceAll(string(text), account, strings.TrimSuffix(account, "-leader"))), 0o600)
		}
		if config["cluster"] != "of-c1" {
			k["leaderDir"] = filepath.Join(dir, "of-nobody")
		}
		if err != nil {
			t.Fatal(err)
		}
	})
	holder := func() string {
		out, err := w.lab.Kubectl(t.Context(), "c1", nil, "-n", "strait-system", "get", "lease", "strait-leader", "-o", "jsonpath={.spec.holderIdentity}", "--ignore-not-found")
		w.must(err)
		return out
	}
	w.kubectl("c1", "-n", w.ns, "create", "service", "clusterip", "lent", "--tcp=80")
	export := fmt.Sprintf("{apiVersion: multicluster.x-k8s.io/v1beta1, kind: ServiceExport, metadata: {name: lent, namespace: %s}}", w.ns)
	w.must(w.lab.Apply(t.Context(), "c1", export))
	imported := func(want bool) {
		t.Helper()
		testutil.Eventually(t, within, func() error {
			out, err := w.lab.Kubectl(t.Context(), "c1", nil, "-n", w.ns, "get", "serviceimport", "lent", "-o", "name", "--ignore-not-found")
			if err == nil && (out != "") != want {
				err = fmt.Errorf("the import is there: %v", !want)
			}
			return err
		})
	}
	time.Sleep(3 * time.Second)
	imported(false)
	if held := holder(); held == "c1-node" {
		t.Errorf("%s leads with the account that only reads", held)
	}

	token := filepath.Join(t.TempDir(), "token")
	text, err := w.lab.Kubectl(t.Context(), "c1", nil, "-n", "strait-system", "create", "token", "strait-leader")
	w.must(err)
	w.must(os.WriteFile(token, []byte(text), 0o600))
	lend := func() *exec.Cmd {
		cmd := exec.Command(w.bin("straitd"), "lend", "--dir", dir, "--token", token)
		cmd.Stderr = os.Stderr
		w.must(cmd.Start())
		t.Cleanup(func() { _ = cmd.Process.Kill(); _ = cmd.Wait() })
		return cmd
	}
	pod := lend()
	imported(true)
	leads := func(want bool) time.Duration {
		t.Helper()
		began := time.Now()
		testutil.Eventually(t, within, func() error {
			if held := holder(); (held == "c1-node") != want {
				return errors.New("the Lease is held by " + held)
			}
			return nil
		})
		return time.Since(began)
	}
	leads(true)
	w.must(pod.Process.Signal(syscall.SIGTERM))
	t.Logf("the Lease was given up after %s", leads(false))
	w.must(pod.Wait())
	pod = lend()
	leads(true)
	w.must(pod.Process.Kill())
	if took := leads(false); took < 20*time.Second {
		t.Errorf("it led for %s after the last sign of life", took)
	}
	if left, err := os.ReadDir(dir); err != nil || len(left) > 0 {
		t.Errorf("left: %v, %v", left, err)
	}
}
