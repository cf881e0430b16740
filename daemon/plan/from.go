package plan

import (
	"net/netip"
	"slices"
	"strings"

	"strait.io/strait/clustermesh"
	"strait.io/strait/internal/problem"
)

// From returns the node that a text names. Self is the node that is asked, and what an empty text means.
// A text is NODE of the same cluster or CLUSTER/NODE; or a pod, by its address, or by NAMESPACE/POD or
// CLUSTER/NAMESPACE/POD if it is an endpoint of a service.
func From(s clustermesh.State, self Self, text string) (Self, error) {
	if text == "" {
		return self, nil
	}
	if a, err := netip.ParseAddr(text); err == nil {
		return fromAddr(s, a.Unmap())
	}
	words := strings.Split(text, "/")
	switch len(words) {
	case 1:
		words = []string{string(self.Cluster), text}
		fallthrough
	case 2:
		node := Self{Cluster: clustermesh.ClusterName(words[0]), Node: clustermesh.NodeName(words[1])}
		if r, is := s.Records.Lookup(node.Origin()); node == self || is && r.Content.Node != nil {
			return node, nil
		}
		if text != words[1] {
			if found := podsNamed(s, words[0], words[1]); len(found) > 0 {
				return oneOf(found, self, text)
			}
		}
		return self, problem.Refuse("strait nodes lists nodes, and a pod without a service has an address", "no node is called %s, and no endpoint's pod", strings.Join(words, "/"))
	case 3:
		found := slices.DeleteFunc(podsNamed(s, words[1], words[2]), func(n Self) bool { return string(n.Cluster) != words[0] })
		return oneOf(found, self, text)
	}
	return self, problem.Refuse("write NODE, CLUSTER/NODE, NAMESPACE/POD, CLUSTER/NAMESPACE/POD or a pod's address", "%q is neither a node nor a pod", text)
}

// fromAddr finds the node of a pod's address, or of its own.
func fromAddr(s clustermesh.State, a netip.Addr) (Self, error) {
	for _, o := range s.Origins() {
		r := s.Records.Get(o)
		for i := range r.Content.Endpoints {
			if e := &r.Content.Endpoints[i]; e.Addr.Unmap() == a && e.Node != "" {
				return Self{Cluster: o.Cluster, Node: e.Node}, nil
			}
		}
		if n := r.Content.Node; n != nil && (slices.Contains(n.Addresses, a) || slices.ContainsFunc(n.Prefixes, func(p netip.Prefix) bool { return p.Contains(a) })) {
			return Self{Cluster: o.Cluster, Node: o.Node}, nil
		}
	}
	return Self{}, problem.Refuse("strait nodes lists them", "no node has the address %s, or pods in its range", a)
}

// podsNamed returns the nodes of the endpoints whose pod has a name, each once.
func podsNamed(s clustermesh.State, namespace, pod string) (out []Self) {
	for _, o := range s.Origins() {
		for _, e := range s.Records.Get(o).Content.Endpoints {
			n := Self{Cluster: o.Cluster, Node: e.Node}
			if e.Pod == pod && e.Service.Namespace == namespace && e.Node != "" && !slices.Contains(out, n) {
				out = append(out, n)
			}
		}
	}
	return out
}

// oneOf returns the node that was meant: that of the own cluster, if pods of several have the name.
func oneOf(found []Self, self Self, text string) (Self, error) {
	if own := slices.DeleteFunc(slices.Clone(found), func(n Self) bool { return n.Cluster != self.Cluster }); len(own) > 0 {
		found = own
	}
	switch len(found) {
	case 0:
		return self, problem.Refuse("a pod without a service has an address", "no endpoint's pod is called %s", text)
	case 1:
		return found[0], nil
	}
	return self, problem.Refuse("write CLUSTER/NAMESPACE/POD", "pods of %s/%s and %s/%s are called %s", found[0].Cluster, found[0].Node, found[1].Cluster, found[1].Node, text)
}
