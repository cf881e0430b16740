package preflight

import (
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/util/version"
)

// helm is what Cilium's chart writes by default, as far as it is of interest, with other values.
func helm(more ...string) map[string]string {
	config := map[string]string{
		"enable-bpf-masquerade": "false", "install-no-conntrack-iptables-rules": "false", "kube-proxy-replacement": "false",
		"ipam": "cluster-pool", "routing-mode": "tunnel", "cluster-name": "default",
	}
	for i := 0; i < len(more); i += 2 {
		config[more[i]] = more[i+1]
	}
	return config
}

func TestCilium(t *testing.T) {
	const current, old = "quay.io/cilium/cilium:v1.20.2@sha256:e20a8ef9", "quay.io/cilium/cilium:v1.19.4"
	for what, c := range map[string]struct {
		cilium Cilium
		want   []string // a part of each warning
	}{
		"no Cilium":                    {Cilium{}, nil},
		"beside kube-proxy":            {Cilium{helm(), current}, nil},
		"instead of it":                {Cilium{helm("kube-proxy-replacement", "true"), current}, nil},
		"an old agent":                 {Cilium{helm(), old}, []string{"DaemonSet kube-system/cilium: image " + old}},
		"an old agent that is current": {Cilium{helm("bpf-lb-sock", "true"), old}, nil},
		"an image of their own":        {Cilium{helm(), "registry.internal:5000/cilium@sha256:00"}, nil},
		"an unknown image":             {Cilium{helm(), ""}, nil},
		"masquerade":                   {Cilium{helm("enable-bpf-masquerade", "true"), current}, []string{`enable-bpf-masquerade: "true"`}},
		"masquerade at named devices":  {Cilium{helm("enable-bpf-masquerade", "true", "devices", "eth0"), current}, nil},
		"no conntrack":                 {Cilium{helm("install-no-conntrack-iptables-rules", "true"), current}, []string{"install-no-conntrack-iptables-rules"}},
		"all at once":                  {Cilium{helm("enable-bpf-masquerade", "true", "install-no-conntrack-iptables-rules", "true", "bpf-lb-sock", "false"), old}, []string{"1.20", "strait0", "no answer"}},
	} {
		got := c.cilium.Warnings(false)
		if len(got) != len(c.want) {
			t.Errorf("%s: %d warnings, want %d: %q", what, len(got), len(c.want), got)
			continue
		}
		for i := range got {
			if !strings.Contains(got[i], c.want[i]) {
				t.Errorf("%s: %q, want %q in it", what, got[i], c.want[i])
			}
		}
	}
}

// An old agent does not mind programs below the root of the cgroup tree.
func TestBelowRoot(t *testing.T) {
	c := Cilium{helm(), "quay.io/cilium/cilium:v1.19.4"}
	if root, below := c.Warnings(false), c.Warnings(true); len(root) != 1 || len(below) != 0 {
		t.Errorf("at the root %q, below %q", root, below)
	}
}

func TestTag(t *testing.T) {
	for image, want := range map[string]string{
		"quay.io/cilium/cilium:v1.20.2@sha256:00": "1.20.2", "cilium:1.9": "1.9", "registry.internal:5000/cilium": "",
		"registry.internal:5000/cilium:v1.18.0-rc.1": "1.18.0-rc.1", "": "", "a/b:": "",
	} {
		if got := tag(image); got != want {
			t.Errorf("%s: %q, want %q", image, got, want)
		}
	}
}

func TestBefore(t *testing.T) {
	for text, want := range map[string]bool{
		"6.16.12+deb13-amd64": true, "6.17.0": false, "6.18.3": false, "7.0": false, "5.15.0-91-generic": true, "6.9": true, "": false, "latest": false, "6": false,
	} {
		if got := before(text, version.MajorMinor(6, 17)); got != want {
			t.Errorf("%q: %t", text, got)
		}
	}
}
