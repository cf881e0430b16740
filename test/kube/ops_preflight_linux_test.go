package kube

import (
	"encoding/json"
	"errors"
	"os/exec"
	"strings"
	"testing"

	"strait.io/strait/test/kubelab"
)

// testPreflight checks two clusters in which strait is not installed: they are fit for it, and a port that
// is blocked between two nodes is named with both. Nothing is left behind.
func testPreflight(t *testing.T, o *ops) {
	fit := o.preflight(t, 0)
	for _, c := range fit {
		if c.State == "failed" || c.State == "unknown" {
			t.Errorf("%+v", c)
		}
	}
	far := kubectl(t, "c2", "get", "node", "c2n1", "-o", `jsonpath={.status.addresses[?(@.type=="InternalIP")].address}`)
	rule := []string{"OUTPUT", "-p", "udp", "-d", far, "--dport", "51820", "-j", "DROP"}
	t.Run("Blocked", func(t *testing.T) {
		o.enter(t, "c1n1", append([]string{"iptables", "-w", "-I"}, rule...), append([]string{"iptables", "-w", "-D"}, rule...))
		for _, c := range o.preflight(t, 1) {
			if c.Title != "the nodes reach each other's ports" {
				continue
			}
			if len(c.Findings) != 1 || !strings.HasPrefix(c.Findings[0].Message, "51820/UDP: ") || strings.Join(c.Findings[0].Nodes, " ") != "c1/c1n1 → c2/c2n1" {
				t.Errorf("%+v", c)
			}
			return
		}
		t.Error("the ports were not checked")
	})
	for _, c := range []string{"c1", "c2"} {
		if left := kubectl(t, c, "get", "namespace", "strait-preflight", "--ignore-not-found", "-o", "name"); left != "" {
			t.Errorf("%s still has %s", c, left)
		}
	}
}

// preflightCheck is a check as strait check -o json prints it.
type preflightCheck struct {
	Title, State string
	Findings     []struct {
		Message string
		Nodes   []string
	}
}

// preflight runs strait check --pre for both clusters.
func (o *ops) preflight(t *testing.T, want int) []preflightCheck {
	t.Helper()
	args := append([]string{"check", "--pre", "--context", "c1", "--context", "c2", "--image", o.strait.Image, "-o", "json", "--kubeconfig", o.Kubeconfig()}, kubelab.Settings...)
	var list struct{ Items []preflightCheck }
	out, err := exec.CommandContext(t.Context(), o.strait.CLI, args...).Output()
	var ended *exec.ExitError
	code := 0
	if errors.As(err, &ended) {
		code = ended.ExitCode()
	}
	if code != want || json.Unmarshal(out, &list) != nil {
		t.Fatalf("exit code %d, want %d: %v\n%s", code, want, err, out)
	}
	return list.Items
}
