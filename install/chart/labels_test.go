package chart_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"
)

// workloads are the chart's objects that have pods, with what a deployment of it must never change.
var workloads = map[string]string{
	"DaemonSet/strait":         "map[matchLabels:map[app.kubernetes.io/component:daemon app.kubernetes.io/name:strait]]",
	"DaemonSet/strait-tunnel":  "map[matchLabels:map[app.kubernetes.io/component:tunnel app.kubernetes.io/name:strait]]",
	"Deployment/strait-leader": "map[matchLabels:map[app.kubernetes.io/component:leader app.kubernetes.io/name:strait]]",
	"Deployment/strait-view":   "map[matchLabels:map[app.kubernetes.io/component:view app.kubernetes.io/name:strait]]",
}

// TestLabels: every object has the labels that charts have by convention, and names the chart's
// release. What changes with every release of the chart is neither in pods, which would restart,
// nor in selectors, which cannot change.
func TestLabels(t *testing.T) {
	for id, o := range render(t, everything) {
		labels, _ := dig(o, "metadata", "labels").(map[string]any)
		for _, l := range []string{"app.kubernetes.io/name", "app.kubernetes.io/instance", "app.kubernetes.io/version", "app.kubernetes.io/part-of", "helm.sh/chart"} {
			if labels[l] == nil {
				t.Errorf("%s has no label %s", id, l)
			}
		}
		if got := fmt.Sprint(labels["helm.sh/chart"]); !strings.HasPrefix(got, "strait-") || labels["team"] != "net" {
			t.Errorf("%s: labels %v", id, labels)
		}
		pods, _ := dig(o, "spec", "template", "metadata", "labels").(map[string]any)
		selector, is := workloads[id]
		if (pods != nil) != is {
			t.Errorf("%s has pods: %v", id, pods != nil)
		}
		if !is {
			continue
		}
		if got := fmt.Sprint(dig(o, "spec", "selector")); got != selector {
			t.Errorf("%s selects %s; it cannot be changed from %s", id, got, selector)
		}
		if pods["helm.sh/chart"] != nil || pods["app.kubernetes.io/managed-by"] != nil || pods["team"] != "net" {
			t.Errorf("%s: pods have %v", id, pods)
		}
		if labels["app.kubernetes.io/component"] != pods["app.kubernetes.io/component"] {
			t.Errorf("%s is component %v, its pods are %v", id, labels["app.kubernetes.io/component"], pods["app.kubernetes.io/component"])
		}
	}
	mine := render(t, "commonLabels: {app.kubernetes.io/managed-by: mine, helm.sh/chart: other}")["ConfigMap/strait"]
	if got := fmt.Sprint(dig(mine, "metadata", "labels", "app.kubernetes.io/managed-by"), dig(mine, "metadata", "labels", "helm.sh/chart")); got != "mineother" {
		t.Errorf("commonLabels do not win: %s", got)
	}
}

// everything are values with which the chart makes each of its objects.
const everything = `{createNamespace: true, admissionPolicy: true, commonLabels: {team: net}, openshift: {securityContextConstraints: true}, mesh: {implementation: userspace}, bpf: {mount: true},
  metrics: {listen: '0.0.0.0:9964', podMonitor: {enabled: true}, prometheusRule: {enabled: true}, dashboards: {enabled: true}}}`

// TestEverything: the values above leave out no file of the chart's templates.
func TestEverything(t *testing.T) {
	all := render(t, everything)
	for _, values := range helmValues {
		for id := range render(t, values) {
			if all[id] == nil {
				t.Errorf("%s makes %s, which is not among everything", values, id)
			}
		}
	}
	if !slices.ContainsFunc(helmValues, func(v string) bool { return v == "{}" }) {
		t.Error("the defaults are not compared with Helm")
	}
}
