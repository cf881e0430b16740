package chart_test

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	networkingv1 "k8s.io/api/networking/v1"
	policyv1 "k8s.io/api/policy/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
)

// podsOf are the pod templates of all workloads.
func podsOf(t *testing.T, all map[string]map[string]any) map[string]corev1.PodTemplateSpec {
	t.Helper()
	out := map[string]corev1.PodTemplateSpec{}
	for id, o := range all {
		switch o["kind"] {
		case "DaemonSet":
			out[id] = decode[appsv1.DaemonSet](t, all, id).Spec.Template
		case "Deployment":
			out[id] = decode[appsv1.Deployment](t, all, id).Spec.Template
		}
	}
	return out
}

// TestProbes: every container of the chart that stays is probed, by its own program or at a port
// that it has.
func TestProbes(t *testing.T) {
	pods := podsOf(t, render(t, everything))
	if got := len(pods); got != len(workloads) {
		t.Errorf("%d workloads: %v", got, slices.Collect(maps.Keys(pods)))
	}
	for id, pod := range pods {
		for _, c := range pod.Spec.Containers {
			for what, p := range map[string]*corev1.Probe{"ready": c.ReadinessProbe, "alive": c.LivenessProbe} {
				switch {
				case p == nil:
					t.Errorf("%s: no probe says whether it is %s", id, what)
				case p.Exec != nil && fmt.Sprint(p.Exec.Command[:2]) != fmt.Sprint(c.Command[:2]):
					t.Errorf("%s: the probe runs %v, the container %v", id, p.Exec.Command, c.Command)
				case p.HTTPGet != nil && p.HTTPGet.Port.StrVal != "" && p.HTTPGet.Port.StrVal != c.Ports[0].Name:
					t.Errorf("%s: the probe asks port %s, the container has %v", id, p.HTTPGet.Port.StrVal, c.Ports)
				case p.Exec == nil && p.HTTPGet == nil:
					t.Errorf("%s: the probe %+v", id, p)
				}
			}
			// A machine that is busy for a while is no reason to end what works.
			if p := c.LivenessProbe; p != nil && p.PeriodSeconds*p.FailureThreshold < 60 {
				t.Errorf("%s: killed after %d s", id, p.PeriodSeconds*p.FailureThreshold)
			}
		}
	}
}

// TestDisruption: a drain takes one of two pods at a time, and it never waits for the only pod, or
// for pods that cannot start.
func TestDisruption(t *testing.T) {
	for values, want := range map[string]string{
		"{}": "leader view", "leader: {replicas: 1}": "view", "view: {replicas: 1}": "leader", "view: {enabled: false}": "leader",
		"{leader: {replicas: 0}, view: {replicas: 3}}": "view",
	} {
		all := render(t, values)
		var got []string
		for id := range all {
			if name, is := strings.CutPrefix(id, "PodDisruptionBudget/strait-"); is {
				b := decode[policyv1.PodDisruptionBudget](t, all, id)
				if b.Spec.MaxUnavailable.IntValue() != 1 || b.Spec.MinAvailable != nil || *b.Spec.UnhealthyPodEvictionPolicy != policyv1.AlwaysAllow {
					t.Errorf("%s: %s: %+v", values, id, b.Spec)
				}
				mustSelect(t, all, b.Spec.Selector, "Deployment/strait-"+name)
				got = append(got, name)
			}
		}
		slices.Sort(got)
		if fmt.Sprint(got) != "["+want+"]" {
			t.Errorf("%s: budgets for %v, want %s", values, got, want)
		}
	}
}

// mustSelect wants a selector to fit the pods of one workload and no other's.
func mustSelect(t *testing.T, all map[string]map[string]any, s *metav1.LabelSelector, workload string) {
	t.Helper()
	selector, err := metav1.LabelSelectorAsSelector(s)
	if err != nil {
		t.Fatal(err)
	}
	for id, pod := range podsOf(t, all) {
		if selector.Matches(labels.Set(pod.Labels)) != (id == workload) {
			t.Errorf("%s, for %s: it fits the pods of %s: %v", selector, workload, id, id != workload)
		}
	}
}

// TestNetworkPolicy: the pods of strait-leader have no network, and those of strait-view only
// answer at their port. Pods on the host's network are in no policy, because none holds for them.
func TestNetworkPolicy(t *testing.T) {
	all := render(t, everything)
	want := map[string]string{"NetworkPolicy/strait-leader": "[] []", "NetworkPolicy/strait-view": "[https] []"}
	for id, wanted := range want {
		p := decode[networkingv1.NetworkPolicy](t, all, id).Spec
		if fmt.Sprint(p.PolicyTypes) != "[Ingress Egress]" {
			t.Errorf("%s is about %v", id, p.PolicyTypes)
		}
		var in []string
		for _, r := range p.Ingress {
			for _, port := range r.Ports {
				in = append(in, port.Port.String())
			}
			if len(r.From) > 0 || len(r.Ports) == 0 {
				t.Errorf("%s: %+v", id, r)
			}
		}
		if got := fmt.Sprint(in, p.Egress); got != wanted {
			t.Errorf("%s allows %s, want %s", id, got, wanted)
		}
		mustSelect(t, all, &p.PodSelector, strings.Replace(id, "NetworkPolicy/", "Deployment/", 1))
	}
	for id, pod := range podsOf(t, all) {
		if _, has := want[strings.Replace(id, "Deployment/", "NetworkPolicy/", 1)]; has == pod.Spec.HostNetwork {
			t.Errorf("%s is on the host's network: %v, and has a policy: %v", id, pod.Spec.HostNetwork, has)
		}
	}
	if port := decode[appsv1.Deployment](t, all, "Deployment/strait-view").Spec.Template.Spec.Containers[0].Ports[0].Name; port != "https" {
		t.Errorf("the pods of strait-view have the port %s", port)
	}
	for id := range render(t, "networkPolicy: false") {
		if strings.HasPrefix(id, "NetworkPolicy/") {
			t.Errorf("%s is there", id)
		}
	}
}
