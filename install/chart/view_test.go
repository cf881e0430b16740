package chart_test

import (
	"fmt"
	"strings"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	"sigs.k8s.io/yaml"

	"strait.io/strait/daemon/api"
)

// decode reads one of the chart's objects as its type.
func decode[T any](t *testing.T, objects map[string]map[string]any, id string) (out T) {
	t.Helper()
	text, err := yaml.Marshal(objects[id])
	if err == nil {
		err = yaml.UnmarshalStrict(text, &out)
	}
	if err != nil || objects[id] == nil {
		t.Fatalf("%s: %v\n%s", id, err, text)
	}
	return out
}

// TestViewPod: the pods of strait-view have no rights: on their node they can reach one socket, by the group that
// the daemon gives it to.
func TestViewPod(t *testing.T) {
	all := render(t, "{}")
	d := decode[appsv1.Deployment](t, all, "Deployment/"+api.ViewName)
	pod, c := d.Spec.Template.Spec, d.Spec.Template.Spec.Containers[0]
	s, p := c.SecurityContext, pod.SecurityContext
	if pod.HostNetwork || pod.HostPID || pod.HostIPC || len(pod.Containers)+len(pod.InitContainers) != 1 || len(s.Capabilities.Add) > 0 || fmt.Sprint(s.Capabilities.Drop) != "[ALL]" ||
		!*s.ReadOnlyRootFilesystem || *s.AllowPrivilegeEscalation || *s.Privileged || !*p.RunAsNonRoot || p.SeccompProfile.Type != corev1.SeccompProfileTypeRuntimeDefault {
		t.Errorf("what it may do on the node: %+v %+v", p, s)
	}
	account := decode[corev1.ServiceAccount](t, all, "ServiceAccount/"+api.ViewName)
	if *pod.AutomountServiceAccountToken || *account.AutomountServiceAccountToken || pod.ServiceAccountName != account.Name {
		t.Errorf("it has a token of account %q", pod.ServiceAccountName)
	}
	if c.Resources.Limits.Memory().IsZero() {
		t.Error("it can take all the memory of its node")
	}
	var sees []string
	for _, v := range pod.Volumes {
		switch {
		case v.HostPath != nil:
			sees = append(sees, v.HostPath.Path)
		case v.Secret != nil:
			sees = append(sees, fmt.Sprint(v.Secret.SecretName, "/", v.Secret.Items[0].Key, " optional ", *v.Secret.Optional))
		default:
			t.Errorf("volume %+v", v)
		}
	}
	if want := fmt.Sprintf("[%s/%s optional true /run/strait/view]", api.ViewName, api.ViewTokenKey); fmt.Sprint(sees) != want {
		t.Errorf("it sees %v, want %s", sees, want)
	}
	for _, m := range c.VolumeMounts {
		if !m.ReadOnly {
			t.Errorf("it can write to %s", m.MountPath)
		}
	}
	daemon := decode[appsv1.DaemonSet](t, all, "DaemonSet/strait").Spec.Template.Spec
	group := *p.RunAsGroup
	if daemon.SecurityContext == nil || fmt.Sprint(daemon.SecurityContext.SupplementalGroups) != fmt.Sprint([]int64{group}) || configOf(t, all)["viewGroup"] != float64(group) ||
		group == 0 || *p.RunAsUser == 0 || *p.FSGroup != group {
		t.Errorf("the pod has user %d and group %d, the daemon %+v and viewGroup %v", *p.RunAsUser, group, daemon.SecurityContext, configOf(t, all)["viewGroup"])
	}
	service := decode[corev1.Service](t, all, "Service/"+api.ViewName)
	if len(service.Spec.Ports) != 1 || "https:"+service.Name+":"+service.Spec.Ports[0].Name != api.ViewProxy || service.Spec.Ports[0].TargetPort.StrVal != c.Ports[0].Name {
		t.Errorf("the Service's ports %+v", service.Spec.Ports)
	}
	for k, v := range service.Spec.Selector {
		if d.Spec.Template.Labels[k] != v {
			t.Errorf("the Service selects %s=%s, the pods have %q", k, v, d.Spec.Template.Labels[k])
		}
	}
}

// TestViewRights: the Role lets a person ask, and nothing else; the chart binds it to no one, and no account of the
// chart's is bound to anything that reads the token.
func TestViewRights(t *testing.T) {
	all := render(t, "{}")
	proxy, token := rule("services/proxy", "get"), rule("secrets", "get")
	proxy.ResourceNames, token.ResourceNames = []string{api.ViewProxy}, []string{api.ViewName}
	rightsAre(t, all, map[string][]rbacv1.PolicyRule{"Role/strait-view-reader": {proxy, token}})
	for id, o := range all {
		if role, is := o["roleRef"].(map[string]any); is && (role["name"] == "strait-view-reader" || strings.Contains(fmt.Sprint(o["subjects"]), api.ViewName)) {
			t.Errorf("%s binds %v to %v", id, role["name"], o["subjects"])
		}
	}
}

// TestViewOff: without strait-view, nothing of it is left, and the daemon makes no socket for it.
func TestViewOff(t *testing.T) {
	all := render(t, "view: {enabled: false}")
	for id := range all {
		if _, name, _ := strings.Cut(id, "/"); strings.HasPrefix(name, api.ViewName) && id != "ClusterRole/strait-view" {
			t.Errorf("%s is there", id)
		}
	}
	if s := decode[appsv1.DaemonSet](t, all, "DaemonSet/strait").Spec.Template.Spec.SecurityContext; s != nil || configOf(t, all)["viewGroup"] != nil {
		t.Errorf("the daemon has %+v and viewGroup %v", s, configOf(t, all)["viewGroup"])
	}
}
