package install

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"strait.io/strait/internal/testutil"
	"strait.io/strait/test/kubelab/apiserver"
)

// constraintsKind makes an API server look like OpenShift's. What the kind's fields mean is in
// TestOpenShift of install/chart.
const constraintsKind = `
apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata: {name: securitycontextconstraints.security.openshift.io}
spec:
  group: security.openshift.io
  scope: Cluster
  names: {plural: securitycontextconstraints, singular: securitycontextconstraints, kind: SecurityContextConstraints}
  versions:
  - name: v1
    served: true
    storage: true
    schema: {openAPIV3Schema: {type: object, x-kubernetes-preserve-unknown-fields: true}}
`

// TestOpenShift: on OpenShift, install also makes the constraints without which no pod starts,
// keeps the rest when they are turned off, and uninstall takes them away.
func TestOpenShift(t *testing.T) {
	u := newUser(t)
	if out := u.does(with(installC1, "--dry-run")); strings.Contains(out, "SecurityContextConstraints") {
		t.Errorf("without the kind: %s", out)
	}
	if err := apiserver.Lab(t, 2).Apply(t.Context(), "c1", constraintsKind); err != nil {
		t.Fatal(err)
	}
	defer u.kubectl("c1", "delete", "crd", "securitycontextconstraints.security.openshift.io")
	testutil.Eventually(t, 30*time.Second, func() error {
		_, err := apiserver.Lab(t, 2).Kubectl(t.Context(), "c1", nil, "get", "securitycontextconstraints")
		return err
	})
	names := func() string {
		return u.kubectl("c1", "get", "securitycontextconstraints", "-o", "jsonpath={.items[*].metadata.name}")
	}
	u.does(with(installC1, "--wait=false"), "created  SecurityContextConstraints strait")
	u.uninstallAtEnd("c1")
	if got := names(); got != "strait strait-leader strait-view" {
		t.Errorf("constraints %s", got)
	}
	if got := u.kubectl("c1", "-n", "strait-system", "get", "daemonset", "strait", "-o", "jsonpath={.spec.template.spec.containers[0].securityContext.seLinuxOptions.type}"); got != "spc_t" {
		t.Errorf("SELinux type %q", got)
	}
	u.does([]string{"upgrade", "--context", "c1", "--wait=false", "--set", "openshift.securityContextConstraints=false"}, "deleted  SecurityContextConstraints strait")
	gone := func() error {
		if got := names(); got != "" {
			return fmt.Errorf("the constraints %s are left", got)
		}
		return nil
	}
	testutil.Eventually(t, 90*time.Second, gone) // the collector of garbage learns of a new kind within 30 s
	u.does([]string{"upgrade", "--context", "c1", "--wait=false", "--set", "openshift.securityContextConstraints=null"}, "created  SecurityContextConstraints strait")
	u.does([]string{"uninstall", "--context", "c1", "--timeout", "60s"})
	testutil.Eventually(t, 30*time.Second, gone)
}
