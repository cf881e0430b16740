package chart_test

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/yaml"
)

// TestPodMonitor: a PodMonitor finds the daemons' pods and the port that they name, which is the
// one that the daemon listens on. By default there is none.
func TestPodMonitor(t *testing.T) {
	plain := render(t, "{}")
	if plain["PodMonitor/strait"] != nil || plain["PrometheusRule/strait"] != nil {
		t.Error("objects of the operator are there by default")
	}
	all := render(t, "metrics: {listen: '0.0.0.0:9970', podMonitor: {enabled: true, interval: 1m, labels: {release: p}}}")
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

// TestMetricsPort: the daemon, its probes and the port that its pod names are at one place,
// whichever value says so: a port that another program has can be left to it.
func TestMetricsPort(t *testing.T) {
	for values, want := range map[string]string{
		"{}":                                           "127.0.0.1:9964 at 127.0.0.1:9964, on 127.0.0.1",
		"metrics: {listen: '127.0.0.1:9970'}":          "127.0.0.1:9970 at 127.0.0.1:9970, on 127.0.0.1",
		"metrics: {listen: '0.0.0.0:9970'}":            "0.0.0.0:9970 at 127.0.0.1:9970, on ",
		"metrics: {listen: '[::]:9970'}":               "[::]:9970 at 127.0.0.1:9970, on ",
		"metrics: {listen: '[::1]:9970'}":              "[::1]:9970 at ::1:9970, on ",
		"config: {metrics: {listen: '172.31.0.1:80'}}": "172.31.0.1:80 at 172.31.0.1:80, on ",
		"{metrics: {listen: '127.0.0.1:1'}, config: {metrics: {listen: '127.0.0.1:2'}}}": "127.0.0.1:2 at 127.0.0.1:2, on 127.0.0.1",
		"metrics: {listen: off}":           "off",
		"config: {metrics: {listen: off}}": "off",
		"metrics: {listen: 'off'}":         "off",
	} {
		all := render(t, values)
		got := fmt.Sprint(dig(configOf(t, all), "metrics", "listen"))
		c := decode[appsv1.DaemonSet](t, all, "DaemonSet/strait").Spec.Template.Spec.Containers[0]
		named := map[string]corev1.ContainerPort{}
		for _, p := range c.Ports {
			named[p.Name] = p
		}
		for _, probe := range []*corev1.Probe{c.StartupProbe, c.LivenessProbe, c.ReadinessProbe} {
			if probe == nil {
				continue
			}
			if at := fmt.Sprintf(" at %s:%s, on %s", probe.HTTPGet.Host, probe.HTTPGet.Port.String(), named["metrics"].HostIP); !strings.HasSuffix(got, at) {
				got += at
			}
			if probe.HTTPGet.Port.IntVal != named["metrics"].ContainerPort {
				t.Errorf("%s: a probe asks port %d, and the pod names %d", values, probe.HTTPGet.Port.IntVal, named["metrics"].ContainerPort)
			}
		}
		if got != want {
			t.Errorf("%s: %s, want %s", values, got, want)
		}
	}
	gossip := decode[appsv1.DaemonSet](t, render(t, "config: {gossip: {bind: '[::]:7000'}}"), "DaemonSet/strait").Spec.Template.Spec.Containers[0].Ports
	if len(gossip) != 2 || gossip[1].Name != "gossip" || gossip[1].ContainerPort != 7000 {
		t.Errorf("ports %+v", gossip)
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
