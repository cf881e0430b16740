package chart_test

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	"sigs.k8s.io/yaml"
)

// reachable is the setting without which the chart makes no PodMonitor.
const reachable = "config: {metrics: {listen: '0.0.0.0:9964'}}\n"

// TestPodMonitor: a PodMonitor finds the daemons' pods and the port that they name, which is the
// one that the daemon listens on. By default there is none, and the pods are as before.
func TestPodMonitor(t *testing.T) {
	plain := render(t, reachable)
	if plain["PodMonitor/strait"] != nil || plain["PrometheusRule/strait"] != nil {
		t.Error("objects of the operator are there by default")
	}
	if ports := decode[appsv1.DaemonSet](t, plain, "DaemonSet/strait").Spec.Template.Spec.Containers[0].Ports; len(ports) != 0 {
		t.Errorf("ports by default: %v", ports)
	}
	all := render(t, reachable+"metrics: {podMonitor: {enabled: true, interval: 1m, labels: {release: p}}}")
	monitor := all["PodMonitor/strait"]
	if dig(monitor, "metadata", "labels", "release") != "p" || dig(monitor, "metadata", "labels", "app.kubernetes.io/part-of") != "strait" {
		t.Errorf("labels %v", dig(monitor, "metadata", "labels"))
	}
	pods := decode[appsv1.DaemonSet](t, all, "DaemonSet/strait").Spec.Template
	selector, _ := dig(monitor, "spec", "selector", "matchLabels").(map[string]any)
	if len(selector) == 0 {
		t.Error("it selects all pods")
	}
	for k, v := range selector {
		if pods.Labels[k] != v {
			t.Errorf("it selects %s: %v, pods have %v", k, v, pods.Labels)
		}
	}
	endpoint := dig(monitor, "spec", "podMetricsEndpoints").([]any)[0]
	port := pods.Spec.Containers[0].Ports[0]
	if dig(endpoint, "port") != port.Name || dig(endpoint, "interval") != "1m" {
		t.Errorf("it scrapes %v, pods have %v", endpoint, port)
	}
	if listen := dig(configOf(t, all), "metrics", "listen"); listen != fmt.Sprint("0.0.0.0:", port.ContainerPort) {
		t.Errorf("the port is %d, the daemon listens on %v", port.ContainerPort, listen)
	}
}

// TestPrometheusRule: it has the alerts, with nothing of them rendered by Helm.
func TestPrometheusRule(t *testing.T) {
	all := render(t, "metrics: {prometheusRule: {enabled: true, labels: {release: p}}}")
	rule := all["PrometheusRule/strait"]
	if dig(rule, "metadata", "labels", "release") != "p" {
		t.Errorf("labels %v", dig(rule, "metadata", "labels"))
	}
	have, err := yaml.Marshal(rule["spec"])
	if err != nil {
		t.Fatal(err)
	}
	var got ruleFile
	if err := yaml.UnmarshalStrict(have, &got); err != nil {
		t.Fatal(err)
	}
	if want := alerts(t); fmt.Sprintf("%+v", got) != fmt.Sprintf("%+v", want) {
		t.Errorf("the rule has\n%+v, want\n%+v", got, want)
	}
}

// TestDashboards: each file of the chart is a ConfigMap that Grafana's sidecar finds, with the file as it is.
func TestDashboards(t *testing.T) {
	names, err := filepath.Glob("strait/monitoring/dashboards/*.json")
	if err != nil || len(names) == 0 {
		t.Fatalf("no dashboards: %v", err)
	}
	all := render(t, "metrics: {dashboards: {enabled: true}}")
	for _, name := range names {
		want, err := os.ReadFile(name)
		if err != nil {
			t.Fatal(err)
		}
		file := filepath.Base(name)
		o := all["ConfigMap/strait-dashboard-"+strings.TrimSuffix(file, ".json")]
		if dig(o, "metadata", "labels", "grafana_dashboard") != "1" {
			t.Errorf("%s: labels %v", file, dig(o, "metadata", "labels"))
		}
		if got, _ := dig(o, "data", file).(string); strings.TrimSpace(got) != strings.TrimSpace(string(want)) {
			t.Errorf("%s is not the file:\n%s", file, got)
		}
		if render(t, "{}")["ConfigMap/strait-dashboard-"+strings.TrimSuffix(file, ".json")] != nil {
			t.Errorf("%s is there by default", file)
		}
	}
}
