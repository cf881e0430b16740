package trust

import (
	"fmt"
	"strings"
	"testing"
)

func TestPodRanges(t *testing.T) {
	const (
		flannel = `{"Network": "10.244.0.0/16", "IPv6Network": "fd00:10::/56", "Backend": {"Type": "vxlan"}}`
		kubeadm = "apiVersion: kubeadm.k8s.io/v1beta4\nkind: ClusterConfiguration\nnetworking:\n  podSubnet: 10.1.0.0/16,fd00:1::/48\n  serviceSubnet: 10.96.0.0/12\n"
		proxy   = "apiVersion: kubeproxy.config.k8s.io/v1alpha1\nkind: KubeProxyConfiguration\nclusterCIDR: 10.2.0.0/16\n"
	)
	for name, c := range map[string]struct {
		from Sources
		want string
	}{
		"nothing":                 {Sources{}, " []"},
		"calico before kubeadm":   {Sources{Calico: []string{"192.168.0.0/16", "192.168.0.0/16", "fd00:2::/64"}, Kubeadm: kubeadm}, "Calico's IPPools [192.168.0.0/16 fd00:2::/64]"},
		"cilium, several pools":   {Sources{Cilium: map[string]string{"cluster-pool-ipv4-cidr": "10.0.0.0/16 10.5.0.0/16"}}, "cilium-config [10.0.0.0/16 10.5.0.0/16]"},
		"cilium without pools":    {Sources{Cilium: map[string]string{"ipam": "kubernetes"}, Kubeadm: kubeadm}, "kubeadm-config [10.1.0.0/16 fd00:1::/48]"},
		"flannel":                 {Sources{Flannel: flannel, KubeProxy: proxy}, "kube-flannel-cfg [10.244.0.0/16 fd00:10::/56]"},
		"kube-proxy":              {Sources{KubeProxy: proxy}, "kube-proxy's configuration [10.2.0.0/16]"},
		"one that cannot be read": {Sources{Flannel: "{", Kubeadm: "- x", KubeProxy: proxy}, "kube-proxy's configuration [10.2.0.0/16]"},
		"one with an odd value":   {Sources{Calico: []string{"all()"}, KubeProxy: "clusterCIDR: 10.2.0.9/16"}, "kube-proxy's configuration [10.2.0.0/16]"},
	} {
		ranges, from := c.from.PodRanges()
		if got := fmt.Sprint(from, " ", ranges); got != c.want {
			t.Errorf("%s: %s, want %s", name, got, c.want)
		}
	}
}

// What the network names is pinned, and must contain what the Nodes have.
func TestProposeNamedRanges(t *testing.T) {
	ms := two()
	ms[0].Ranges = prefixes("10.11.0.0/17")
	ms[1].PodCIDRs, ms[1].Ranges = nil, prefixes("10.12.0.0/18")
	pins, err := Propose(ms, nil, Asked{}, now)
	if err != nil || pins["c1"].Pods[0].String() != "10.11.0.0/17" || pins["c2"].Pods[0].String() != "10.12.0.0/18" {
		t.Errorf("%v %v", pins, err)
	}
	ms[0].Ranges = prefixes("192.168.0.0/16")
	if _, err := Propose(ms, nil, Asked{}, now); err == nil || !strings.Contains(err.Error(), "cluster c1 has pods at 10.11.0.0/24") {
		t.Errorf("%v", err)
	}
}

func FuzzPodRanges(f *testing.F) {
	f.Add("10.0.0.0/8", "a: b", "{}", "networking: {podSubnet: 1}", "x")
	f.Fuzz(func(t *testing.T, calico, cilium, flannel, kubeadm, proxy string) {
		ranges, from := Sources{[]string{calico}, map[string]string{"cluster-pool-ipv4-cidr": cilium}, flannel, kubeadm, proxy}.PodRanges()
		if (len(ranges) > 0) != (from != "") {
			t.Fatalf("%v from %q", ranges, from)
		}
	})
}
