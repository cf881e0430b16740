// Package preflight decides what to warn of before strait is installed beside a cluster's network.
//
// Inputs are the settings of that network, its version, and the nodes' kernels. Outputs are warnings,
// each of which names an object and a field. It must not know how the inputs are read, nor what reads
// the warnings: an install goes on in any case.
package preflight

import (
	"fmt"
	"strings"

	"k8s.io/apimachinery/pkg/util/version"
)

// Cilium is what is known of Cilium in a cluster. Without a Config, there is none.
type Cilium struct {
	// Config is the data of ConfigMap kube-system/cilium-config.
	Config map[string]string
	// Image is the image of the agent in DaemonSet kube-system/cilium; empty if it is not known.
	Image string
}

// Warnings returns what to expect of Cilium's settings beside strait, and what to do about it. With
// belowRoot, strait attaches nothing to the root of the cgroup tree.
func (c Cilium) Warnings(belowRoot bool) (out []string) {
	warn := func(key, text string) {
		out = append(out, fmt.Sprintf("ConfigMap kube-system/cilium-config: %s: %q: %s", key, c.Config[key], text))
	}
	replaces := c.Config["kube-proxy-replacement"]
	balances := replaces == "true" || replaces == "strict" || c.on("bpf-lb-sock")
	if v := tag(c.Image); !balances && !belowRoot && before(v, version.MajorMinor(1, 20)) && len(c.Config) > 0 {
		out = append(out, fmt.Sprintf("DaemonSet kube-system/cilium: image %s: with its socket load balancer off, an agent before 1.20 "+
			"does not start again on a node where strait is attached to the root of the cgroup tree (cilium#43877); "+
			"upgrade Cilium to 1.20 first, or install with --set cgroup.belowRoot=true", c.Image))
	}
	if c.on("enable-bpf-masquerade") && c.Config["devices"] == "" {
		warn("enable-bpf-masquerade", "Cilium may take the tunnel's device strait0 for one of the node, and then pods reach no other cluster; "+
			"name the nodes' devices in Cilium's Helm value devices")
	}
	if c.on("install-no-conntrack-iptables-rules") {
		warn("install-no-conntrack-iptables-rules", "calls to other clusters from nodes, and from pods on their network, get no answer, "+
			"as the filter of the tunnel sees no connections; set installNoConntrackIptablesRules=false in Cilium's Helm values")
	}
	return out
}

func (c Cilium) on(key string) bool { return c.Config[key] == "true" }

// tag returns the version in an image's reference, such as 1.20.2; empty if there is none.
func tag(image string) string {
	image, _, _ = strings.Cut(image, "@")
	_, name, _ := strings.Cut(image[strings.LastIndex(image, "/")+1:], ":")
	return strings.TrimPrefix(name, "v")
}

// before reports whether a version, such as 1.18.0-rc.1, is before a limit. One that cannot
// be read is not.
func before(text string, limit *version.Version) bool {
	v, err := version.ParseGeneric(text)
	return err == nil && v.LessThan(limit)
}
