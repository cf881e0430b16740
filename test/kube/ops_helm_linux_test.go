package kube

import (
	"fmt"
	"path/filepath"
	"strings"
	"testing"
	"time"

	helm "helm.sh/helm/v4/pkg/chart/common"
	"helm.sh/helm/v4/pkg/chart/common/util"
	"helm.sh/helm/v4/pkg/chart/v2/loader"
	"helm.sh/helm/v4/pkg/engine"

	"strait.io/strait/internal/testutil"
)

// testHelmTest: the pod that helm test makes, as Helm renders it, ends well while all is well.
// Otherwise it ends badly, and its log says why.
func testHelmTest(t *testing.T, o *ops) {
	pod := o.helmTest(t)
	phase := func(want string) {
		t.Helper()
		testutil.Eventually(t, 4*time.Minute, func() error {
			got := kubectl(t, "c1", "-n", "strait-system", "get", "pod", "strait-test", "-o", "jsonpath={.status.phase}")
			if got != want && (got == "Succeeded" || got == "Failed") {
				t.Fatalf("the test %s; want %s\n%s", got, want, o.helmTestLog(t))
			}
			if got != want {
				return fmt.Errorf("the test is %s, want %s", got, want)
			}
			return nil
		})
	}
	again := func() {
		t.Helper()
		kubectl(t, "c1", "-n", "strait-system", "delete", "pod", "strait-test", "--ignore-not-found", "--wait")
		must(t, o.Apply(t.Context(), "c1", pod))
	}
	again()
	defer kubectl(t, "c1", "-n", "strait-system", "delete", "pod", "strait-test", "--ignore-not-found", "--wait=false")
	phase("Succeeded")
	if log := o.helmTestLog(t); !strings.Contains(log, " fine, 0 not fine") {
		t.Errorf("its log says\n%s", log)
	}
	must(t, o.Apply(t.Context(), "c1", mistaken))
	defer kubectl(t, "c1", "delete", "servicepolicy", "mistaken")
	testutil.Eventually(t, within, func() error {
		got := kubectl(t, "c1", "get", "servicepolicy", "mistaken", "-o", "jsonpath={.status.conditions[0].reason}")
		if got != "Invalid" {
			return fmt.Errorf("its condition has the reason %q", got)
		}
		return nil
	})
	again()
	phase("Failed")
	if log := o.helmTestLog(t); !strings.Contains(log, "mistaken") || !strings.Contains(log, "spec.select[0].names[0]") {
		t.Errorf("a policy is wrong, and the log says\n%s", log)
	}
}

// mistaken is an object that the API server takes and strait does not.
const mistaken = `
apiVersion: strait.io/v1alpha1
kind: ServicePolicy
metadata: {name: mistaken}
spec: {from: [c1], to: [c2], select: [{names: ["("]}]}
`

// helmTestLog is what both containers of the test print.
func (o *ops) helmTestLog(t *testing.T) string {
	t.Helper()
	out, err := o.Kubectl(t.Context(), "c1", nil, "-n", "strait-system", "logs", "strait-test", "--all-containers", "--ignore-errors")
	if err != nil {
		return err.Error() + "\n" + out
	}
	return out
}

// helmTest is the pod of helm test as Helm's engine renders it, with the image of the lab.
func (o *ops) helmTest(t *testing.T) string {
	t.Helper()
	c, err := loader.LoadDir(filepath.Join(root, "install/chart/strait"))
	must(t, err)
	at := strings.LastIndex(o.strait.Image, ":")
	values := map[string]any{"image": map[string]any{"repository": o.strait.Image[:at], "tag": o.strait.Image[at+1:]}}
	all, err := util.ToRenderValues(c, values, helm.ReleaseOptions{Name: "strait", Namespace: "strait-system"}, helm.DefaultCapabilities)
	must(t, err)
	files, err := engine.Render(c, all)
	must(t, err)
	return files["strait/templates/tests/check.yaml"]
}
