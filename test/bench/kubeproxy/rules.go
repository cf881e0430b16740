// Package kubeproxy writes the nftables rule set that kube-proxy would load, so that strait can be
// compared with the load balancer that a cluster has today.
//
// Input is frontends, output is the text for `nft -f`. It has the structure of kube-proxy's
// nftables mode (kubernetes/kubernetes, pkg/proxy/nftables/proxier.go): one verdict map from
// ClusterIP, protocol and port to a chain per service. Pure: it must not load anything.
package kubeproxy

import (
	"bufio"
	"crypto/sha256"
	"encoding/base32"
	"fmt"
	"io"
	"strings"

	"strait.io/strait/datapath"
)

// Shape says how a service's chain leads to an endpoint.
type Shape int

const (
	// Maps is the shape in Kubernetes 1.36 and newer: the chain translates with one anonymous map.
	Maps Shape = iota
	// Chains is the shape in Kubernetes 1.29 to 1.35: the chain goes to a chain per endpoint.
	Chains
)

// top is the part that does not depend on the services: every base chain, with the maps and rules
// that each packet or new connection passes. Node ports are served on all addresses, which is the
// default. It omits the rule that drops packets to unassigned addresses, because it does not affect
// what is measured.
const top = `add table ip kube-proxy { comment "rules for kube-proxy" ; }
add chain ip kube-proxy filter-prerouting { type filter hook prerouting priority -110 ; }
add chain ip kube-proxy filter-input { type filter hook input priority -110 ; }
add chain ip kube-proxy filter-forward { type filter hook forward priority -110 ; }
add chain ip kube-proxy filter-output { type filter hook output priority -110 ; }
add chain ip kube-proxy filter-output-post-dnat { type filter hook output priority -90 ; }
add chain ip kube-proxy nat-prerouting { type nat hook prerouting priority -100 ; }
add chain ip kube-proxy nat-output { type nat hook output priority -100 ; }
add chain ip kube-proxy nat-postrouting { type nat hook postrouting priority 100 ; }
add set ip kube-proxy cluster-ips { type ipv4_addr ; comment "Active ClusterIPs" ; }
add map ip kube-proxy no-endpoint-services { type ipv4_addr . inet_proto . inet_service : verdict ; }
add map ip kube-proxy no-endpoint-nodeports { type inet_proto . inet_service : verdict ; }
add map ip kube-proxy firewall-ips { type ipv4_addr . inet_proto . inet_service : verdict ; }
add map ip kube-proxy service-ips { type ipv4_addr . inet_proto . inet_service : verdict ; }
add map ip kube-proxy service-nodeports { type inet_proto . inet_service : verdict ; }
add chain ip kube-proxy service-endpoints-check
add chain ip kube-proxy nodeport-endpoints-check
add chain ip kube-proxy firewall-check
add chain ip kube-proxy cluster-ips-check
add chain ip kube-proxy services
add chain ip kube-proxy masquerading
add chain ip kube-proxy mark-for-masquerade
add rule ip kube-proxy filter-prerouting ct state new jump firewall-check
add rule ip kube-proxy filter-input ct state new jump nodeport-endpoints-check
add rule ip kube-proxy filter-input ct state new jump service-endpoints-check
add rule ip kube-proxy filter-forward ct state new jump service-endpoints-check
add rule ip kube-proxy filter-forward ct state new jump cluster-ips-check
add rule ip kube-proxy filter-output ct state new jump service-endpoints-check
add rule ip kube-proxy filter-output ct state new jump firewall-check
add rule ip kube-proxy filter-output-post-dnat ct state new jump cluster-ips-check
add rule ip kube-proxy nat-prerouting jump services
add rule ip kube-proxy nat-output jump services
add rule ip kube-proxy nat-postrouting jump masquerading
add rule ip kube-proxy mark-for-masquerade mark set mark or 0x4000
add rule ip kube-proxy masquerading mark and 0x4000 == 0 return
add rule ip kube-proxy masquerading mark set mark xor 0x4000
add rule ip kube-proxy masquerading masquerade fully-random
add rule ip kube-proxy service-endpoints-check ip daddr . meta l4proto . th dport vmap @no-endpoint-services
add rule ip kube-proxy nodeport-endpoints-check fib daddr type local ip daddr != 127.0.0.0/8 meta l4proto . th dport vmap @no-endpoint-nodeports
add rule ip kube-proxy firewall-check ip daddr . meta l4proto . th dport vmap @firewall-ips
add rule ip kube-proxy cluster-ips-check ip daddr @cluster-ips reject comment "Reject traffic to invalid ports of ClusterIPs"
add rule ip kube-proxy services ip daddr . meta l4proto . th dport vmap @service-ips
add rule ip kube-proxy services fib daddr type local ip daddr != 127.0.0.0/8 meta l4proto . th dport vmap @service-nodeports
`

// Write writes one transaction that adds the whole table. All frontends must be IPv4 and have
// backends. pods is the prefix of the clients whose connections are not masqueraded.
func Write(w io.Writer, shape Shape, pods string, frontends []datapath.Frontend) error {
	out := bufio.NewWriter(w)
	fmt.Fprint(out, top)
	for i, f := range frontends {
		s := newService(i, f)
		fmt.Fprintf(out, "add chain ip kube-proxy %s\n", s.chain)
		fmt.Fprintf(out, "add rule ip kube-proxy %s ip daddr %s %s dport %d ip saddr != %s jump mark-for-masquerade\n",
			s.chain, f.Addr.IP, s.proto, f.Addr.Port, pods)
		if shape == Maps {
			s.writeMap(out)
		} else {
			s.writeChains(out)
		}
		fmt.Fprintf(out, "add element ip kube-proxy cluster-ips { %s }\n", f.Addr.IP)
		fmt.Fprintf(out, "add element ip kube-proxy service-ips { %s . %s . %d : goto %s }\n", f.Addr.IP, s.proto, f.Addr.Port, s.chain)
	}
	return out.Flush() // returns the first error of any of these writes
}

type service struct {
	datapath.Frontend
	name, chain, proto string
}

func newService(i int, f datapath.Frontend) service {
	proto := strings.ToLower(f.Addr.Proto.String())
	name := fmt.Sprintf("bench/service-%d/%s/p%d", i, proto, f.Addr.Port)
	return service{Frontend: f, name: name, chain: "service-" + hashed(name), proto: proto}
}

func (s service) writeMap(out *bufio.Writer) {
	var elements []string
	for i, b := range s.Backends {
		elements = append(elements, fmt.Sprintf("%d : %s . %d", i, b.IP, b.Port))
	}
	fmt.Fprintf(out, "add rule ip kube-proxy %s meta l4proto %s dnat ip addr . port to numgen random mod %d map { %s }\n",
		s.chain, s.proto, len(s.Backends), strings.Join(elements, " , "))
}

func (s service) writeChains(out *bufio.Writer) {
	var elements []string
	for i, b := range s.Backends {
		chain := "endpoint-" + hashed(fmt.Sprintf("%s__%s/%d", s.name, b.IP, b.Port))
		elements = append(elements, fmt.Sprintf("%d : goto %s", i, chain))
		fmt.Fprintf(out, "add chain ip kube-proxy %s\n", chain)
		fmt.Fprintf(out, "add rule ip kube-proxy %s ip saddr %s jump mark-for-masquerade\n", chain, b.IP)
		fmt.Fprintf(out, "add rule ip kube-proxy %s meta l4proto %s dnat to %s\n", chain, s.proto, b.AddrPort())
	}
	fmt.Fprintf(out, "add rule ip kube-proxy %s numgen random mod %d vmap { %s }\n",
		s.chain, len(s.Backends), strings.Join(elements, " , "))
}

// hashed prefixes a name with a hash, as kube-proxy does to keep names unique if they are cut
// short.
func hashed(name string) string {
	h := sha256.Sum256([]byte(name))
	return base32.StdEncoding.EncodeToString(h[:])[:8] + "-" + name
}
