package trust

import (
	"net/netip"
	"slices"
	"strings"

	"sigs.k8s.io/yaml"
)

// Sources are the pod ranges that a cluster's network configuration names. Empty fields name none.
type Sources struct {
	// Calico are the CIDRs of its enabled IPPools.
	Calico []string
	// Cilium is ConfigMap kube-system/cilium-config.
	Cilium map[string]string
	// Flannel is net-conf.json of ConfigMap kube-flannel/kube-flannel-cfg.
	Flannel string
	// Kubeadm is ClusterConfiguration of ConfigMap kube-system/kubeadm-config.
	Kubeadm string
	// KubeProxy is config.conf of ConfigMap kube-system/kube-proxy.
	KubeProxy string
}

// PodRanges returns the ranges that the first source names that names any, and which that is. The
// source that allocates the addresses comes before those that were only configured.
func (s Sources) PodRanges() (ranges []netip.Prefix, from string) {
	var flannel struct{ Network, IPv6Network string }
	var kubeadm struct{ Networking struct{ PodSubnet string } }
	var proxy struct{ ClusterCIDR string }
	for _, text := range []struct {
		yaml string
		into any
	}{{s.Flannel, &flannel}, {s.Kubeadm, &kubeadm}, {s.KubeProxy, &proxy}} {
		_ = yaml.Unmarshal([]byte(text.yaml), text.into) // what cannot be read has no ranges, and the next source counts
	}
	for _, source := range []struct {
		name  string
		cidrs []string
	}{
		{"Calico's IPPools", s.Calico},
		{"cilium-config", []string{s.Cilium["cluster-pool-ipv4-cidr"], s.Cilium["cluster-pool-ipv6-cidr"]}},
		{"kube-flannel-cfg", []string{flannel.Network, flannel.IPv6Network}},
		{"kubeadm-config", []string{kubeadm.Networking.PodSubnet}},
		{"kube-proxy's configuration", []string{proxy.ClusterCIDR}},
	} {
		if ranges := parseRanges(source.cidrs); len(ranges) > 0 {
			return ranges, source.name
		}
	}
	return nil, ""
}

// parseRanges reads CIDRs, several of which can be in one text, with blanks or commas between them.
func parseRanges(texts []string) (out []netip.Prefix) {
	for _, text := range texts {
		for _, s := range strings.FieldsFunc(text, func(r rune) bool { return r == ',' || r == ' ' }) {
			if p, err := netip.ParsePrefix(s); err == nil && !slices.Contains(out, p.Masked()) {
				out = append(out, p.Masked())
			}
		}
	}
	return out
}
