package chart_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"strait.io/strait/install/chart"
)

// constraints are a SecurityContextConstraints of security.openshift.io/v1: the fields that its
// schema has and strait sets.
type constraints struct {
	metav1.TypeMeta          `json:",inline"`
	metav1.ObjectMeta        `json:"metadata"`
	Priority                 *int32              `json:"priority"`
	Users                    []string            `json:"users"`
	Groups                   []string            `json:"groups"`
	AllowHostDirVolumePlugin bool                `json:"allowHostDirVolumePlugin"`
	AllowHostNetwork         bool                `json:"allowHostNetwork"`
	AllowHostPorts           bool                `json:"allowHostPorts"`
	AllowHostPID             bool                `json:"allowHostPID"`
	AllowHostIPC             bool                `json:"allowHostIPC"`
	AllowPrivilegedContainer bool                `json:"allowPrivilegedContainer"`
	AllowPrivilegeEscalation *bool               `json:"allowPrivilegeEscalation"`
	AllowedCapabilities      []corev1.Capability `json:"allowedCapabilities"`
	DefaultAddCapabilities   []corev1.Capability `json:"defaultAddCapabilities"`
	RequiredDropCapabilities []corev1.Capability `json:"requiredDropCapabilities"`
	ReadOnlyRootFilesystem   bool                `json:"readOnlyRootFilesystem"`
	SeccompProfiles          []string            `json:"seccompProfiles"`
	Volumes                  []string            `json:"volumes"`
	SELinuxContext           strategy            `json:"seLinuxContext"`
	RunAsUser                struct {
		Type string `json:"type"`
		UID  *int64 `json:"uid"`
	} `json:"runAsUser"`
	FSGroup            strategy `json:"fsGroup"`
	SupplementalGroups strategy `json:"supplementalGroups"`
}

// required are the fields that the schema demands.
var required = []string{
	"allowHostDirVolumePlugin", "allowHostIPC", "allowHostNetwork", "allowHostPID", "allowHostPorts", "allowPrivilegedContainer", "allowedCapabilities",
	"defaultAddCapabilities", "priority", "readOnlyRootFilesystem", "requiredDropCapabilities", "volumes",
}

type strategy struct {
	Type   string `json:"type"`
	Ranges []struct {
		Min int64 `json:"min"`
		Max int64 `json:"max"`
	} `json:"ranges,omitempty"`
}

// refuses returns why OpenShift's admission would not let a pod in, by its documentation of each
// field.
func (s constraints) refuses(pod corev1.PodSpec) (why []string) {
	deny := func(is bool, what string, args ...any) {
		if is {
			why = append(why, fmt.Sprintf(what, args...))
		}
	}
	deny(pod.HostNetwork && !s.AllowHostNetwork, "hostNetwork")
	deny(pod.HostPID && !s.AllowHostPID, "hostPID")
	deny(pod.HostIPC && !s.AllowHostIPC, "hostIPC")
	for _, v := range pod.Volumes {
		kind := "other"
		switch {
		case v.HostPath != nil:
			kind = "hostPath"
			deny(!s.AllowHostDirVolumePlugin, "allowHostDirVolumePlugin")
		case v.Projected != nil:
			kind = "projected"
		case v.Secret != nil:
			kind = "secret"
		case v.ConfigMap != nil:
			kind = "configMap"
		}
		deny(!slices.Contains(s.Volumes, kind), "a volume of kind %s", kind)
	}
	p := pod.SecurityContext
	if p == nil {
		p = &corev1.PodSecurityContext{}
	}
	deny(s.FSGroup.Type == "MustRunAs" && (p.FSGroup == nil || *p.FSGroup < s.FSGroup.Ranges[0].Min || *p.FSGroup > s.FSGroup.Ranges[0].Max), "fsGroup %v", p.FSGroup)
	for _, c := range append(pod.InitContainers, pod.Containers...) {
		x := c.SecurityContext
		if c.Name == "mount-bpffs" { // what it does not say is set for it
			x.RunAsUser, x.SeccompProfile = s.RunAsUser.UID, &corev1.SeccompProfile{Type: corev1.SeccompProfileTypeRuntimeDefault}
			x.Capabilities = &corev1.Capabilities{}
		}
		user, profile := x.RunAsUser, x.SeccompProfile
		if user == nil {
			user = p.RunAsUser
		}
		if profile == nil {
			profile = p.SeccompProfile
		}
		deny(s.RunAsUser.Type == "MustRunAs" && (user == nil || *user != *s.RunAsUser.UID), "%s: user %v", c.Name, user)
		deny(profile == nil || profile.Type != corev1.SeccompProfileTypeRuntimeDefault, "%s: seccomp %v", c.Name, profile)
		deny(x.Privileged != nil && *x.Privileged && !s.AllowPrivilegedContainer, "%s: privileged", c.Name)
		deny((x.AllowPrivilegeEscalation == nil || *x.AllowPrivilegeEscalation) && !*s.AllowPrivilegeEscalation, "%s: privilege escalation", c.Name)
		deny(s.ReadOnlyRootFilesystem && (x.ReadOnlyRootFilesystem == nil || !*x.ReadOnlyRootFilesystem), "%s: its root is not read-only", c.Name)
		for _, add := range x.Capabilities.Add {
			deny(!slices.Contains(s.AllowedCapabilities, add), "%s: capability %s", c.Name, add)
		}
		for _, drop := range s.RequiredDropCapabilities {
			deny(!slices.Contains(x.Capabilities.Drop, drop), "%s: does not drop %s", c.Name, drop)
		}
		for _, port := range c.Ports {
			deny(pod.HostNetwork && port.ContainerPort != 0 && !s.AllowHostPorts, "%s: host port", c.Name)
		}
	}
	return why
}

// TestOpenShift: the constraints of an account let its pods in, and name nothing that they do not
// use.
func TestOpenShift(t *testing.T) {
	for _, values := range []string{
		"", "bpf: {mount: true, destroySockets: false, liftMemoryLimit: false}", "dns: {listen: ['169.254.20.10:53']}",
		"mesh: {implementation: userspace}", "view: {enabled: false}",
	} {
		all := render(t, "openshift: {securityContextConstraints: true}\n"+values)
		pods := podsOf(t, all)
		for id, pod := range pods {
			account := pod.Spec.ServiceAccountName
			s := decode[constraints](t, all, "SecurityContextConstraints/"+account)
			for _, field := range required {
				if _, has := all["SecurityContextConstraints/"+account][field]; !has {
					t.Errorf("%s: the constraints of %s have no %s, and the schema wants it, if only as null", values, account, field)
				}
			}
			if why := s.refuses(pod.Spec); len(why) > 0 {
				t.Errorf("%s: %s may not run: %v", values, id, why)
			}
			if got := fmt.Sprint(s.Users, pod.Annotations["openshift.io/required-scc"]); got != "[system:serviceaccount:strait-system:"+account+"]"+account || s.Priority != nil || len(s.Groups) > 0 {
				t.Errorf("%s: %s: constraints for %s, with priority %v", values, id, got, s.Priority)
			}
			c := pod.Spec.Containers[0].SecurityContext
			if len(c.Capabilities.Add) != len(s.AllowedCapabilities) || s.AllowHostPID != pod.Spec.HostPID || s.AllowHostNetwork != pod.Spec.HostNetwork ||
				s.AllowPrivilegedContainer != (len(pod.Spec.InitContainers) > 0) {
				t.Errorf("%s: %s: more is allowed than is used: %+v", values, id, s)
			}
			if c.SELinuxOptions == nil || c.SELinuxOptions.Type != "spc_t" {
				t.Errorf("%s: %s: SELinux options %+v", values, id, c.SELinuxOptions)
			}
			// Without one of its rights, a pod is refused: so the check above can fail.
			s.AllowHostDirVolumePlugin = false
			if len(s.refuses(pod.Spec)) == 0 {
				t.Errorf("%s may have host paths without that right", id)
			}
		}
		for id := range all {
			if name, is := strings.CutPrefix(id, "SecurityContextConstraints/"); is && all["DaemonSet/"+name] == nil && all["Deployment/"+name] == nil {
				t.Errorf("%s: %s is for no pod", values, id)
			}
		}
	}
	own := render(t, "{openshift: {securityContextConstraints: true}, seLinuxOptions: {type: mine_t}}")
	if got := podsOf(t, own)["DaemonSet/strait"].Spec.Containers[0].SecurityContext.SELinuxOptions.Type; got != "mine_t" {
		t.Errorf("SELinux type %s, want the one of the value", got)
	}
}

// TestOpenShiftIsFound: the constraints are there by themselves where the API server has the kind,
// without a value.
func TestOpenShiftIsFound(t *testing.T) {
	const id = "SecurityContextConstraints/strait"
	for _, x := range []struct {
		values string
		apis   []string
		want   bool
	}{
		{"{}", nil, false}, {"{}", []string{"apps/v1", "security.openshift.io/v1"}, true}, {"{}", []string{"apps.openshift.io/v1"}, false},
		{"openshift: {securityContextConstraints: false}", []string{"security.openshift.io/v1"}, false},
		{"openshift: {securityContextConstraints: true}", nil, true},
	} {
		v, err := chart.Read([][]byte{[]byte(x.values)}, nil)
		if err != nil {
			t.Fatal(err)
		}
		docs, err := chart.Render(chart.Options{Values: v, APIs: x.apis})
		if err != nil {
			t.Fatal(err)
		}
		ours, theirs := objects(t, docs)[id] != nil, helm(t, v, x.apis...)[id] != nil
		if ours != x.want || theirs != x.want {
			t.Errorf("%s with %v: constraints %v, of Helm %v, want %v", x.values, x.apis, ours, theirs, x.want)
		}
	}
}
