package chart_test

import (
	"fmt"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/yaml"
)

// containers are those of the chart's DaemonSets, by "DaemonSet/container", and which of them see the
// host's bpffs.
func containers(t *testing.T, values string) (all map[string]corev1.Container, bpffs map[string]bool) {
	t.Helper()
	all, bpffs = map[string]corev1.Container{}, map[string]bool{}
	for id, o := range render(t, values) {
		if o["kind"] != "DaemonSet" {
			continue
		}
		text, err := yaml.Marshal(o)
		var set appsv1.DaemonSet
		if err == nil {
			err = yaml.UnmarshalStrict(text, &set)
		}
		if err != nil {
			t.Fatalf("%s: %v", id, err)
		}
		pod := set.Spec.Template.Spec
		host := map[string]string{}
		for _, v := range pod.Volumes {
			if v.HostPath != nil {
				host[v.Name] = v.HostPath.Path
			}
		}
		for _, c := range append(pod.InitContainers, pod.Containers...) {
			name := set.Name + "/" + c.Name
			all[name] = c
			for _, m := range c.VolumeMounts {
				bpffs[name] = bpffs[name] || host[m.Name] == "/sys/fs/bpf"
			}
		}
	}
	return all, bpffs
}

// TestUnconfined: AppArmor's and SELinux's defaults for containers would keep strait from pinning, whatever its
// capabilities are.
func TestUnconfined(t *testing.T) {
	const all = "bpf: {mount: true}\nmesh: {implementation: userspace}\n"
	plain, bpffs := containers(t, all)
	for name, want := range map[string]bool{"strait/mount-bpffs": true, "strait/straitd": true, "strait-tunnel/tunnel": false} {
		if got, there := bpffs[name]; !there || got != want {
			t.Errorf("%s sees the host's bpffs: %v, want %v", name, got, want)
		}
	}
	for name, c := range plain {
		s := c.SecurityContext
		if s == nil || s.AppArmorProfile == nil || s.AppArmorProfile.Type != corev1.AppArmorProfileTypeUnconfined {
			t.Errorf("%s has the runtime's AppArmor profile: %+v", name, s)
		} else if s.SELinuxOptions != nil {
			t.Errorf("%s has an SELinux label that was not set: %+v", name, s.SELinuxOptions)
		}
	}
	labelled, _ := containers(t, all+"seLinuxOptions: {type: spc_t, level: 's0'}")
	for name, c := range labelled {
		if got := fmt.Sprint(c.SecurityContext.SELinuxOptions); got != "&SELinuxOptions{User:,Role:,Type:spc_t,Level:s0,}" {
			t.Errorf("%s: SELinux options %s", name, got)
		}
	}
}

// leader is the pod of the Deployment strait-leader.
func leader(t *testing.T, values string) (corev1.PodSpec, appsv1.DeploymentSpec) {
	t.Helper()
	text, err := yaml.Marshal(render(t, values)["Deployment/strait-leader"])
	var d appsv1.Deployment
	if err == nil {
		err = yaml.UnmarshalStrict(text, &d)
	}
	if err != nil || len(d.Spec.Template.Spec.Containers) != 1 {
		t.Fatalf("the Deployment strait-leader: %v\n%s", err, text)
	}
	return d.Spec.Template.Spec, d.Spec
}

// TestLeaderPod: the pods that have the token that writes, and the root, can do nothing on their node but
// lend them, and leave a node that died.
func TestLeaderPod(t *testing.T) {
	for _, values := range []string{"{}", "{authority: {sign: true, secret: mine}, seLinuxOptions: {type: spc_t}, nodeSelector: {a: b}, leader: {nodeSelector: {c: d}}}"} {
		pod, d := leader(t, values)
		s := pod.Containers[0].SecurityContext
		if pod.HostNetwork || pod.HostPID || s == nil || len(s.Capabilities.Add) > 0 || fmt.Sprint(s.Capabilities.Drop) != "[ALL]" ||
			!*s.ReadOnlyRootFilesystem || *s.AllowPrivilegeEscalation || *s.Privileged || s.SeccompProfile.Type != corev1.SeccompProfileTypeRuntimeDefault {
			t.Errorf("%s: what it may do on the node: %+v", values, s)
		}
		if *d.Replicas != 2 || *pod.AutomountServiceAccountToken || pod.ServiceAccountName != "strait-leader" {
			t.Errorf("%s: %d pods of account %s", values, *d.Replicas, pod.ServiceAccountName)
		}
		var hosts, lends []string
		for _, v := range pod.Volumes {
			if v.HostPath != nil {
				hosts = append(hosts, v.HostPath.Path)
			}
			if v.Projected == nil {
				continue
			}
			for _, p := range v.Projected.Sources {
				if p.ServiceAccountToken != nil {
					lends = append(lends, fmt.Sprintf("token %s %d", p.ServiceAccountToken.Audience, *p.ServiceAccountToken.ExpirationSeconds))
				} else if p.Secret != nil {
					lends = append(lends, p.Secret.Name+" "+p.Secret.Items[0].Key)
				}
			}
		}
		want := "[token  3600 strait-authority root.key]"
		if values != "{}" {
			want = "[token  3600 mine root.key]"
		}
		if fmt.Sprint(hosts) != "[/run/strait/leader]" || fmt.Sprint(lends) != want {
			t.Errorf("%s: it sees %v of the host, and lends %v; want %s", values, hosts, lends, want)
		}
		if selects := fmt.Sprint(pod.NodeSelector); values != "{}" && selects != "map[a:b c:d kubernetes.io/os:linux]" {
			t.Errorf("%s: on nodes %s", values, selects)
		}
		// The first toleration of a taint counts.
		for _, taint := range []string{"node.kubernetes.io/unreachable", "node.kubernetes.io/not-ready"} {
			for _, tol := range pod.Tolerations {
				if tol.Key == taint || tol.Key == "" {
					if tol.TolerationSeconds == nil || *tol.TolerationSeconds > 60 {
						t.Errorf("%s: it stays on a node that is %s: %+v", values, taint, tol)
					}
					break
				}
			}
		}
	}
}

// TestMemoryLimit: by default, the kernel ends a daemon that takes ever more memory, before it takes
// the node's. The limit leaves room for twice what a daemon takes at rest with 10,000 Services, and
// for the maps of a machine with 128 processors (docs/benchmarks.md, docs/configuration.md).
func TestMemoryLimit(t *testing.T) {
	const mib = 1 << 20
	all, _ := containers(t, "{}")
	limits := all["strait/straitd"].Resources.Limits
	limit := limits.Memory().Value()
	if least := int64(2*151+312) * mib; limit < least || limit > 2*least {
		t.Errorf("the limit is %d MiB, want %d MiB or a little more", limit/mib, least/mib)
	}
	none, _ := containers(t, "resources: {limits: null}")
	if limits := none["strait/straitd"].Resources.Limits; len(limits) > 0 {
		t.Errorf("without limits: %v", limits)
	}
}

// TestLeaderPlace: the root comes to nodes of the control plane first, and to two nodes. What operators
// require of all pods holds for it too.
func TestLeaderPlace(t *testing.T) {
	for _, values := range []string{"{}", "affinity: {nodeAffinity: {requiredDuringSchedulingIgnoredDuringExecution: {nodeSelectorTerms: [{matchExpressions: [{key: a, operator: Exists}]}]}}}"} {
		pod, _ := leader(t, values)
		a := pod.Affinity
		if a == nil || a.NodeAffinity == nil || a.PodAntiAffinity == nil || len(a.NodeAffinity.PreferredDuringSchedulingIgnoredDuringExecution) != 1 ||
			a.NodeAffinity.PreferredDuringSchedulingIgnoredDuringExecution[0].Preference.MatchExpressions[0].Key != "node-role.kubernetes.io/control-plane" ||
			a.PodAntiAffinity.PreferredDuringSchedulingIgnoredDuringExecution[0].PodAffinityTerm.TopologyKey != "kubernetes.io/hostname" {
			t.Errorf("%s: affinity %+v", values, a)
		}
		if required := a.NodeAffinity.RequiredDuringSchedulingIgnoredDuringExecution; (required != nil) != (values != "{}") {
			t.Errorf("%s: required %+v", values, required)
		}
		tolerates := false
		for _, tol := range pod.Tolerations {
			tolerates = tolerates || tol.Operator == corev1.TolerationOpExists && tol.Key == "" && tol.Effect == ""
		}
		if !tolerates {
			t.Errorf("%s: it does not tolerate the taint of the nodes that it prefers: %+v", values, pod.Tolerations)
		}
	}
	if pod, _ := leader(t, "leader: {affinity: null}"); pod.Affinity != nil {
		t.Errorf("affinity %+v, want none", pod.Affinity)
	}
}
