package supply

import (
	"encoding/json"
	"maps"
	"slices"
	"testing"
)

// excused are the checks of kube-score that the chart does not pass, with why.
var excused = map[string]string{
	"container-resources":                           "a CPU limit would slow the daemon when it has most to do; memory is limited",
	"container-ephemeral-storage-request-and-limit": "the roots are read-only and there is no emptyDir: nothing is written to it but the log",
	"container-image-pull-policy":                   "a version's tag names one image, and nodes without a registry have it loaded",
	"container-security-context-user-group-id":      "the daemon and strait-leader use files that are root's; strait-view is not root",
	"pod-networkpolicy":                             "the daemon is on the host's network, where no NetworkPolicy holds",
	"pod-probes-identical":                          "to answer is all that these two can do; liveness waits much longer",
	"deployment-has-host-podantiaffinity":           "topologySpreadConstraints do this for strait-view",
}

// TestScore: kube-score finds in the manifest only what is excused above, and each of that.
func TestScore(t *testing.T) {
	needTool(t, "kube-score")
	out, _ := try(t, top, "bin/tools/kube-score score --kubernetes-version v1.30 -o json install/manifests/strait.yaml") // it fails if it finds something
	var objects []struct {
		Object string `json:"object_name"`
		Checks []struct {
			Check   struct{ ID string }
			Grade   int
			Skipped bool
		}
	}
	if err := json.Unmarshal([]byte(out), &objects); err != nil || len(objects) < 8 {
		t.Fatalf("%d objects, %v\n%s", len(objects), err, out)
	}
	const fine = 10
	found := map[string]bool{}
	for _, o := range objects {
		for _, c := range o.Checks {
			if c.Skipped || c.Grade >= fine {
				continue
			}
			found[c.Check.ID] = true
			if excused[c.Check.ID] == "" {
				t.Errorf("%s: %s", o.Object, c.Check.ID)
			}
		}
	}
	for _, id := range slices.Sorted(maps.Keys(excused)) {
		if !found[id] {
			t.Errorf("%s is excused, and all objects pass it: remove the excuse", id)
		}
	}
}
