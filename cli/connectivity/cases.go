package connectivity

import (
	"fmt"
	"net/netip"
)

// Way is by what a client calls.
type Way string

// The ways to a server.
const (
	ByPodAddress   Way = "pod address"
	ByClusterSetIP Way = "ClusterSetIP"
	ByName         Way = "name"
	ByHeadless     Way = "headless name"
	ByPodName      Way = "pod name"
)

// Group is a group of cases: those that are tried together.
type Group string

// The groups, in the order in which they are tried.
const (
	PodAddresses  Group = "pod addresses"
	ClusterSetIPs Group = "ClusterSetIPs"
	Names         Group = "names"
	Large         Group = "large packets"
)

// Groups are all of them.
var Groups = []Group{PodAddresses, ClusterSetIPs, Names, Large}

// Sizes of requests, in bytes.
const (
	small = 512
	// frame is a datagram that the usual tunnel carries in two packets, and a plain link in one.
	frame = 1400
	// fragments is a datagram of several packets.
	fragments = 8000
	// body is a transfer that needs full segments.
	body = 1 << 20
)

// Case is one thing that must work.
type Case struct {
	Group  Group  `json:"group"`
	Client Client `json:"-"`
	// From is the client: CLUSTER/NODE, and Kind is "pod" or "host".
	From string `json:"from"`
	Kind string `json:"kind"`
	// To is the cluster that is called, and Server the pod of it that must answer; empty if any may.
	To     string   `json:"to"`
	Server Identity `json:"server,omitzero"`
	Way    Way      `json:"way"`
	Proto  string   `json:"protocol"`
	Family string   `json:"family"`
	Size   int      `json:"bytes"`
	// Target is whom the client calls; empty if there is none to call, for which Missing is the reason.
	Target  string `json:"target,omitempty"`
	Port    uint16 `json:"port,omitempty"`
	Missing string `json:"-"`
}

// Title is the case without its client and clusters.
func (c Case) Title() string {
	return fmt.Sprintf("%s %s %s %s", c.Way, c.Proto, c.Family, bytesText(c.Size))
}

func bytesText(n int) string {
	switch {
	case n >= 1<<20:
		return fmt.Sprintf("%d MiB", n>>20)
	case n >= 1000:
		return fmt.Sprintf("%d,%03d B", n/1000, n%1000)
	}
	return fmt.Sprintf("%d B", n)
}

// Cases lists all that must work between the clusters, by client, then by group.
func Cases(namespace string, clusters []Cluster) (out []Case) {
	for _, from := range clusters {
		for _, client := range from.Clients {
			for _, to := range clusters {
				c := caller{namespace: namespace, client: client, to: to}
				c.imports, c.imported = from.Imports[to.Name]
				for _, family := range []string{"IPv4", "IPv6"} {
					out = append(out, c.family(family)...)
				}
			}
		}
	}
	return out
}

// caller makes the cases of one client and one cluster.
type caller struct {
	namespace string
	client    Client
	to        Cluster
	imports   []netip.Addr
	imported  bool
}

// family makes the cases of one family, if both sides have addresses of it.
func (c caller) family(family string) (out []Case) {
	var servers []Server
	for _, s := range c.to.Servers {
		if _, has := ofFamily(s.Addresses, family); has {
			servers = append(servers, s)
		}
	}
	if _, has := ofFamily(c.client.Addresses, family); !has || len(servers) == 0 {
		return nil
	}
	add := func(group Group, way Way, proto string, size int, target string, port uint16, server Identity) {
		out = append(out, Case{Group: group, Client: c.client, From: c.client.Cluster + "/" + c.client.Node, Kind: c.client.Kind(),
			To: c.to.Name, Server: server, Way: way, Proto: proto, Family: family, Size: size, Target: target, Port: port})
	}
	for i, s := range servers {
		addr, _ := ofFamily(s.Addresses, family)
		add(PodAddresses, ByPodAddress, "TCP", small, addr.String(), PodPort, s.Identity)
		add(PodAddresses, ByPodAddress, "UDP", small, addr.String(), PodPort, s.Identity)
		if i == 0 {
			add(Large, ByPodAddress, "TCP", body, addr.String(), PodPort, s.Identity)
			add(Large, ByPodAddress, "UDP", frame, addr.String(), PodPort, s.Identity)
			add(Large, ByPodAddress, "UDP", fragments, addr.String(), PodPort, s.Identity)
		}
	}
	vip, has := ofFamily(c.imports, family)
	if c.imported && !has {
		return out // the clusterset has no range of this family
	}
	ip := ""
	if has {
		ip = vip.String()
	}
	zone := c.namespace + ".svc.clusterset.local."
	add(ClusterSetIPs, ByClusterSetIP, "TCP", small, ip, ServicePort, Identity{})
	add(ClusterSetIPs, ByClusterSetIP, "UDP", small, ip, ServicePort, Identity{})
	add(Large, ByClusterSetIP, "TCP", body, ip, ServicePort, Identity{})
	add(Large, ByClusterSetIP, "UDP", frame, ip, ServicePort, Identity{})
	add(Names, ByName, "TCP", small, ServiceOf(c.to.Name)+"."+zone, ServicePort, Identity{})
	add(Names, ByHeadless, "TCP", small, HeadlessOf(c.to.Name)+"."+zone, PodPort, Identity{})
	for _, s := range servers {
		add(Names, ByPodName, "TCP", small, s.Pod+"."+c.to.Name+"."+HeadlessOf(c.to.Name)+"."+zone, PodPort, s.Identity)
	}
	if !c.imported {
		for i := range out {
			if out[i].Way != ByPodAddress {
				out[i].Missing = fmt.Sprintf("cluster %s has no ServiceImport of %s", c.client.Cluster, ServiceOf(c.to.Name))
			}
		}
	}
	return out
}

func ofFamily(addresses []netip.Addr, family string) (netip.Addr, bool) {
	for _, a := range addresses {
		if a.Is4() == (family == "IPv4") {
			return a, true
		}
	}
	return netip.Addr{}, false
}

// Call is what the case asks of its client; false if there is nothing to call.
func (c Case) Call(id int) (Call, bool) {
	if c.Missing != "" {
		return Call{}, false
	}
	network := map[string]string{"TCP": "tcp", "UDP": "udp"}[c.Proto] + map[string]string{"IPv4": "4", "IPv6": "6"}[c.Family]
	patience := 5000
	if c.Group == Names || c.Group == Large {
		patience = 8000 // CoreDNS keeps for 5 s that a name does not exist; several packets are lost more often than one
	}
	return Call{ID: id, Network: network, Host: c.Target, Port: c.Port, Size: c.Size, PatienceMillis: patience}, true
}
