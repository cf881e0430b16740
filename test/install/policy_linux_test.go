package install

import (
	"errors"
	"strings"
	"testing"
	"time"

	"strait.io/strait/internal/testutil"
	"strait.io/strait/test/kubelab/apiserver"
)

// as runs kubectl in c1 as a user who may do everything but what a policy refuses, and returns the refusal.
func (u user) as(name, object string, args ...string) error {
	u.Helper()
	args = append(args, "--as="+name, "--as-group=system:masters", "--as-group=system:authenticated")
	_, err := apiserver.Lab(u, 2).Kubectl(u.Context(), "c1", []byte(object), args...)
	if err != nil && !strings.Contains(err.Error(), "ValidatingAdmissionPolicy") {
		u.Fatalf("kubectl %q as %s: %v", args, name, err)
	}
	return err
}

// TestPolicies: exports from barred namespaces are refused; and what strait manages is kept from
// all but strait, and the controllers that clear away after an owner or a namespace, whatever
// kube-controller-manager calls itself.
func TestPolicies(t *testing.T) {
	u := newUser(t)
	u.uninstallAtEnd("c1") // the Service below too
	u.does(with(installC1, "--set", "admissionPolicy=true", "--set", "barredNamespaces={[^d]*}"), "ValidatingAdmissionPolicy")
	const derived = `{apiVersion: v1, kind: Service, spec: {ports: [{port: 80}]}, metadata: {name: derived-policy, namespace: default,
labels: {app.kubernetes.io/managed-by: strait, strait.io/service-import: policy}}}`
	const daemon = "system:serviceaccount:strait-system:strait-leader"
	if err := u.as(daemon, derived, "create", "-f", "-"); err != nil {
		t.Fatal(err)
	}
	remove := func(name string) error {
		return u.as(name, "", "-n", "default", "delete", "service", "derived-policy", "--dry-run=server")
	}
	testutil.Eventually(t, 30*time.Second, func() error {
		if remove("somebody") == nil {
			return errors.New("the policy is not in force")
		}
		return nil
	})
	for name, may := range map[string]bool{
		daemon: true,
		"system:serviceaccount:kube-system:namespace-controller":      true,
		"system:serviceaccount:kube-system:generic-garbage-collector": true,
		"system:kube-controller-manager":                              true,
		"system:kube-scheduler":                                       false,
		"system:serviceaccount:default:kube-system":                   false,
		"kubernetes-admin":                                            false,
	} {
		if err := remove(name); (err == nil) != may {
			t.Errorf("%s deletes a derived Service: %v; want it allowed: %v", name, err, may)
		}
	}
	const export = "{apiVersion: multicluster.x-k8s.io/v1beta1, kind: ServiceExport, metadata: {name: policy}}"
	for namespace, may := range map[string]bool{"default": true, "strait-system": false, "kube-system": false} {
		err := u.as("somebody", export, "-n", namespace, "create", "--dry-run=server", "-f", "-")
		if (err == nil) != may || !may && !strings.Contains(err.Error(), "barred") {
			t.Errorf("an export from %s: %v; want it allowed: %v", namespace, err, may)
		}
	}
}
