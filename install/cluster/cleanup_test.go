package cluster

import (
	"strings"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/yaml"
)

// TestCleanup: the cleanup has the daemon's mounts and rights, and nothing that serves.
func TestCleanup(t *testing.T) {
	const daemon = `
metadata: {namespace: strait-system, name: strait}
spec:
  template:
    spec:
      hostPID: true
      containers:
      - name: straitd
        image: strait:1
        ports: [{name: metrics, containerPort: 9964}]
        livenessProbe: {httpGet: {port: 9964}}
        securityContext: {appArmorProfile: {type: Unconfined}, seLinuxOptions: {type: spc_t}, capabilities: {drop: [ALL], add: [BPF]}}
        volumeMounts:
        - {name: state, mountPath: /var/lib/strait}
        - {name: bpffs, mountPath: /sys/fs/bpf}
      volumes:
      - {name: config, projected: {sources: [{configMap: {name: strait}}, {secret: {name: strait-clusterset}},
          {configMap: {name: strait-pins}}, {serviceAccountToken: {path: token}}]}}
      - {name: state, hostPath: {path: /var/lib/strait}}
      - {name: bpffs, hostPath: {path: /sys/fs/bpf}}`
	var ds appsv1.DaemonSet
	if err := yaml.UnmarshalStrict([]byte(daemon), &ds); err != nil {
		t.Fatal(err)
	}
	spec := cleanupOf(&ds).Spec.Template.Spec
	work, hold := spec.InitContainers[0], spec.Containers[0]
	if work.Image != "strait:1" || work.LivenessProbe != nil || len(work.Ports) > 0 || !strings.Contains(strings.Join(work.Command, " "), "cleanup") ||
		len(work.SecurityContext.Capabilities.Add) != 1 || !spec.HostPID {
		t.Errorf("work %+v", work)
	}
	if c := work.SecurityContext; c.AppArmorProfile == nil || c.AppArmorProfile.Type != corev1.AppArmorProfileTypeUnconfined ||
		c.SELinuxOptions == nil || c.SELinuxOptions.Type != "spc_t" {
		t.Errorf("work is confined, and could not remove pins: %+v", c)
	}
	if len(hold.SecurityContext.Capabilities.Add) != 0 || len(hold.VolumeMounts) != 0 {
		t.Errorf("what holds the pod has rights: %+v", hold)
	}
	if len(spec.Volumes[0].Projected.Sources) != 1 || spec.Volumes[1].HostPath.Path != "/var/lib" || work.VolumeMounts[0].MountPath != "/var/lib" ||
		work.VolumeMounts[1].MountPath != "/sys/fs/bpf" {
		t.Errorf("mounts %+v of %+v", work.VolumeMounts, spec.Volumes)
	}
	if own := ds.Spec.Template.Spec.Volumes; own[1].HostPath.Path != "/var/lib/strait" || len(own[0].Projected.Sources) != 4 {
		t.Error("the daemon's own was changed")
	}
}
