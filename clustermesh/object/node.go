package object

import (
	"cmp"
	"fmt"
	"net/netip"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/validation"

	"strait.io/strait/clustermesh"
	"strait.io/strait/internal/ovn"
	"strait.io/strait/internal/problem"
)

// AnnotationPrefixes is the annotation of a Node that lists its pods' prefixes, separated by
// commas. It is for nodes whose prefixes neither their spec nor their present pods show: some CNIs
// give out blocks of addresses of their own.
const AnnotationPrefixes = "strait.io/prefixes"

// AnnotationClusterIPs is the annotation of a Node that makes it the entry to ranges of its
// cluster's ClusterIPs, separated by commas, for other clusters whose pins contain them.
const AnnotationClusterIPs = "strait.io/cluster-ips"

// The labels with a Node's location; the first one that is set counts.
var (
	regionLabels = []string{corev1.LabelTopologyRegion, corev1.LabelFailureDomainBetaRegion}
	zoneLabels   = []string{corev1.LabelTopologyZone, corev1.LabelFailureDomainBetaZone}
)

// Node holds what is read of a Node, as written.
type Node struct {
	ID
	region, zone string
	relay        string
	annotations  map[string]string
	podCIDR      string
	podCIDRs     []string
	addresses    []corev1.NodeAddress
	cordoned     bool
	// bypasses: the pods' packets leave without seeing the node's routes.
	bypasses bool
}

func nodeFrom(in *corev1.Node) *Node {
	first := func(labels []string) string {
		for _, l := range labels {
			if v := in.Labels[l]; v != "" {
				return intern(v)
			}
		}
		return ""
	}
	gateway := in.Annotations[ovn.Annotation]
	kept := where(in.Annotations, func(key string) bool { return key != ovn.Annotation }) // it is long
	return &Node{ID: ID{Name: in.Name}, region: first(regionLabels), zone: first(zoneLabels), relay: in.Labels[clustermesh.LabelRelay], annotations: kept,
		podCIDR: in.Spec.PodCIDR, podCIDRs: in.Spec.PodCIDRs, addresses: in.Status.Addresses, cordoned: in.Spec.Unschedulable, bypasses: ovn.Bypasses(gateway)}
}

func (n *Node) insert(o *Objects) { o.Nodes = append(o.Nodes, n) }

// nodes are those of a cluster, sorted by name, with the annotations of some.
type nodes struct {
	list     []clustermesh.Node
	prefixes map[clustermesh.NodeName][]netip.Prefix
	// clusterIPs are those of AnnotationClusterIPs.
	clusterIPs map[clustermesh.NodeName][]netip.Prefix
	keys       map[clustermesh.NodeName]string
}

// readNodes reads Nodes. ClusterIPs are ranges of the cluster's ClusterIPs. If two objects have the
// same name, the first counts.
func readNodes(objs []*Node, c Config, clusterIPs []netip.Prefix, r *report) nodes {
	out := nodes{
		prefixes: map[clustermesh.NodeName][]netip.Prefix{}, clusterIPs: map[clustermesh.NodeName][]netip.Prefix{}, keys: map[clustermesh.NodeName]string{},
	}
	seen := map[string]bool{}
	for _, obj := range objs {
		o := r.on("Node", "", obj.Name)
		if msgs := validation.IsDNS1123Subdomain(obj.Name); len(msgs) > 0 {
			o.problem(problem.ValueInvalid, "metadata.name", fmt.Sprintf("%q is not a node name: not used", obj.Name), msgs[0])
			continue
		}
		if seen[obj.Name] {
			o.problem(problem.ObjectRepeated, "metadata.name", "another Node has this name: only the first is used", "give every Node its own name")
			continue
		}
		seen[obj.Name] = true
		n := readNode(obj, o)
		if c.DrainCordoned && obj.cordoned && n.Drain == nil {
			n.Drain = &clustermesh.Drain{}
		}
		out.list = append(out.list, n)
		if p := writtenPrefixes(obj, o); len(p) > 0 {
			out.prefixes[n.Name] = p
		}
		if p := writtenClusterIPs(obj, clusterIPs, o); len(p) > 0 {
			out.clusterIPs[n.Name] = p
		}
		if k := nodeKey(obj, o); k != "" {
			out.keys[n.Name] = k
		}
	}
	slices.SortFunc(out.list, func(a, b clustermesh.Node) int { return cmp.Compare(a.Name, b.Name) })
	if c.Tunnels {
		bypassed(objs, r)
	}
	return out
}

// bypassed reports that pods' packets do not see the routes into the tunnels, once for all Nodes.
func bypassed(objs []*Node, r *report) {
	var names []string
	for _, obj := range objs {
		if obj.bypasses {
			names = append(names, obj.Name)
		}
	}
	if len(names) == 0 {
		return
	}
	slices.Sort(names)
	r.on("Node", "", names[0]).warning(problem.RouteBypassed, path(ovn.Annotation),
		fmt.Sprintf("OVN-Kubernetes is in gateway mode shared, on %d Nodes in all: packets of pods leave without seeing the node's routes, so pods reach no other cluster by tunnel", len(names)),
		"set routingViaHost: true in the gatewayConfig of OVN-Kubernetes, which is its gateway mode local")
}

func readNode(obj *Node, o *objectReport) clustermesh.Node {
	n := clustermesh.Node{
		Name:      clustermesh.NodeName(obj.Name),
		Locality:  clustermesh.Locality{Region: obj.region, Zone: obj.zone},
		Addresses: nodeAddresses(obj, o),
		Prefixes:  nodePrefixes(obj, o),
	}
	var err error
	if n.Relay, err = clustermesh.ParseRelayUse(obj.relay); err != nil {
		o.problem(problem.ValueInvalid, "metadata.labels["+clustermesh.LabelRelay+"]", err.Error()+": as if it were auto", "write auto, never or only, or delete the label")
	}
	if value, ok := obj.annotations[AnnotationDrain]; ok {
		n.Drain = readDrain(note{AnnotationDrain, value, o})
	}
	if len(n.Addresses) == 0 {
		o.warning(problem.NodeWithoutAddress, "status.addresses", "no InternalIP or ExternalIP: this object gives other clusters no address of the node",
			"add an address of type InternalIP")
	}
	return n
}

// nodeAddresses returns internal addresses before external ones, each once.
func nodeAddresses(obj *Node, o *objectReport) (out []netip.Addr) {
	for _, want := range []corev1.NodeAddressType{corev1.NodeInternalIP, corev1.NodeExternalIP} {
		for i, a := range obj.addresses {
			if a.Type != want {
				continue
			}
			ip, err := parseHost(a.Address)
			if err != nil {
				o.problem(problem.ValueInvalid, at("status.addresses[%d].address", i), err.Error(), "write an address such as 192.0.2.1")
				continue
			}
			if !slices.Contains(out, ip) {
				out = append(out, ip)
			}
		}
	}
	return out
}

func nodePrefixes(obj *Node, o *objectReport) (out []netip.Prefix) {
	add := func(field, text string) {
		p, err := parsePrefix(text)
		if err != nil {
			o.problem(problem.ValueInvalid, field, err.Error(), "write the pods' prefix such as 10.1.2.0/24")
			return
		}
		if !slices.Contains(out, p) {
			out = append(out, p)
		}
	}
	for i, text := range obj.podCIDRs {
		add(at("spec.podCIDRs[%d]", i), text)
	}
	switch {
	case obj.podCIDR == "":
	case len(obj.podCIDRs) == 0:
		add("spec.podCIDR", obj.podCIDR)
	case obj.podCIDR != obj.podCIDRs[0]:
		o.warning(problem.ValueInvalid, "spec.podCIDR", fmt.Sprintf("%q is not spec.podCIDRs[0], %q: not used", obj.podCIDR, obj.podCIDRs[0]),
			"write the same prefix in both fields, or remove spec.podCIDR")
	}
	return out
}

// writtenPrefixes returns the prefixes in AnnotationPrefixes.
func writtenPrefixes(obj *Node, o *objectReport) []netip.Prefix {
	return obj.ranges(AnnotationPrefixes, `write the prefixes of the node's pods, separated by commas, such as "10.1.2.0/24,fd00:1:2::/64"`, o)
}

// writtenClusterIPs returns the ranges in AnnotationClusterIPs that hold ClusterIPs of the cluster.
func writtenClusterIPs(obj *Node, have []netip.Prefix, o *objectReport) []netip.Prefix {
	const try = `write the cluster's range of ClusterIPs, or single ones, separated by commas, such as "10.96.0.0/16" or "10.96.3.4/32"`
	return slices.DeleteFunc(obj.ranges(AnnotationClusterIPs, try, o), func(p netip.Prefix) bool {
		if slices.ContainsFunc(have, p.Overlaps) {
			return false
		}
		o.problem(problem.ValueInvalid, path(AnnotationClusterIPs), fmt.Sprintf("no Service of this cluster has a ClusterIP in %s: not used", p), try)
		return true
	})
}

// ranges returns the CIDRs in an annotation, each once.
func (obj *Node) ranges(annotation, try string, o *objectReport) (out []netip.Prefix) {
	value, ok := obj.annotations[annotation]
	if !ok {
		return nil
	}
	for _, text := range strings.Split(value, ",") {
		p, err := parsePrefix(strings.TrimSpace(text))
		if err != nil {
			o.problem(problem.ValueInvalid, path(annotation), err.Error(), try)
			continue
		}
		if !slices.Contains(out, p) {
			out = append(out, p)
		}
	}
	return out
}

// nodeKey returns the fingerprint in clustermesh.AnnotationNodeKey.
func nodeKey(obj *Node, o *objectReport) string {
	value, ok := obj.annotations[clustermesh.AnnotationNodeKey]
	if !ok {
		return ""
	}
	if err := clustermesh.CheckFingerprint(value); err != nil {
		o.problem(problem.ValueInvalid, path(clustermesh.AnnotationNodeKey), err.Error()+": not used", "write the fingerprint that straitd on that machine reports")
		return ""
	}
	return value
}

// parsePrefix parses a CIDR of pods and clears its host bits, as Kubernetes does.
func parsePrefix(text string) (netip.Prefix, error) {
	p, err := netip.ParsePrefix(text)
	if err != nil || p.Addr().Is4In6() {
		return netip.Prefix{}, fmt.Errorf("%q is not a CIDR: not used", text)
	}
	p = p.Masked()
	if err := clustermesh.CheckPrefix(p); err != nil {
		return netip.Prefix{}, fmt.Errorf("%w: not used", err)
	}
	return p, nil
}

// parseHost parses an address to which other machines can send packets.
func parseHost(text string) (netip.Addr, error) {
	ip, err := netip.ParseAddr(text)
	if err != nil || ip.Is4In6() || ip.Zone() != "" {
		return netip.Addr{}, fmt.Errorf("%q is not an IP address: not used", text)
	}
	if err := clustermesh.CheckHost(ip); err != nil {
		return netip.Addr{}, fmt.Errorf("%w: not used", err)
	}
	return ip, nil
}
