package fleet

import (
	"encoding/json"
	"strings"
	"testing"

	"strait.io/strait/install/chart"
)

// preflightPodSpec is what the test looks at of a pod.
type preflightPodSpec struct {
	HostNetwork, AutomountServiceAccountToken bool
	ServiceAccountName                        string
	NodeSelector                              map[string]string
	Tolerations, InitContainers               []any
	Containers                                []struct {
		Image           string
		Command         []string
		Env             []any
		SecurityContext struct {
			Privileged   bool
			Capabilities struct{ Add []string }
		}
		StartupProbe, LivenessProbe, ReadinessProbe any
		Ports                                       []any
		VolumeMounts                                []struct {
			Name     string
			ReadOnly bool
		}
	}
	Volumes []struct {
		Name              string
		Secret, Projected any
		HostPath          *struct{ Type string }
	}
}

// TestPreflightObjects: the pods of a preflight run the image where the daemon would run, with what it may
// do, and with nothing else: no Secret, no account, and no place of the node that they can write to.
func TestPreflightObjects(t *testing.T) {
	docs, err := chart.Render(chart.Options{Version: "v9", Values: chart.Values{
		"image": splitImage("registry.example/strait:v9"), "nodeSelector": map[string]any{"a": "b"}, "mesh": map[string]any{"implementation": "userspace"}}})
	if err != nil {
		t.Fatal(err)
	}
	made, err := preflightObjects(docs)
	if err != nil {
		t.Fatal(err)
	}
	var ds struct {
		Spec struct {
			Template struct{ Spec preflightPodSpec }
		}
	}
	for _, d := range made {
		if !strings.Contains(string(d), preflightNamespace) || !strings.Contains(string(d), preflightLabel) {
			t.Errorf("%s", d)
		}
		if strings.Contains(string(d), `"kind":"DaemonSet"`) {
			if err := json.Unmarshal(d, &ds); err != nil {
				t.Fatal(err)
			}
		}
	}
	pod := ds.Spec.Template.Spec
	if !pod.HostNetwork || pod.NodeSelector["a"] != "b" || len(pod.Tolerations) == 0 || pod.ServiceAccountName != "" || pod.AutomountServiceAccountToken ||
		len(pod.InitContainers) > 0 || len(pod.Containers) != 1 {
		t.Errorf("%+v", pod)
	}
	c := pod.Containers[0]
	if c.Image != "registry.example/strait:v9" || c.Command[0] != "/strait" || c.SecurityContext.Privileged || len(c.SecurityContext.Capabilities.Add) < 4 ||
		c.StartupProbe != nil || c.LivenessProbe != nil || c.ReadinessProbe != nil || len(c.Ports) > 0 || len(c.Env) != 1 {
		t.Errorf("%+v", c)
	}
	mounted := map[string]bool{}
	for _, m := range c.VolumeMounts {
		mounted[m.Name] = true
		if !m.ReadOnly {
			t.Errorf("%s can be written to", m.Name)
		}
	}
	for _, v := range pod.Volumes {
		if v.Secret != nil || v.Projected != nil || !mounted[v.Name] || v.HostPath != nil && v.HostPath.Type == "DirectoryOrCreate" {
			t.Errorf("%+v", v)
		}
	}
	if len(pod.Volumes) != len(c.VolumeMounts) || len(pod.Volumes) != 6 {
		t.Errorf("%d volumes, %d mounts", len(pod.Volumes), len(c.VolumeMounts))
	}
}
