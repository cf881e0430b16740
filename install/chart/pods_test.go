package chart_test

import (
	"fmt"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/yaml"
)

// containers are all of the chart's pods, by "DaemonSet/container", and which of them see the host's bpffs.
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
			t.Errorf("%s has an SELinux label that nobody gave: %+v", name, s.SELinuxOptions)
		}
	}
	labelled, _ := containers(t, all+"seLinuxOptions: {type: spc_t, level: 's0'}")
	for name, c := range labelled {
		if got := fmt.Sprint(c.SecurityContext.SELinuxOptions); got != "&SELinuxOptions{User:,Role:,Type:spc_t,Level:s0,}" {
			t.Errorf("%s: SELinux options %s", name, got)
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
