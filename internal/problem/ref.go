package problem

import (
	"strings"
	"unicode"
)

// Ref names what a Problem is about, so that programs need not read its text. A kind with a capital
// is one of Kubernetes: "ServiceExport", or "ServiceExport.net.gke.io" of another API group. Others are
// strait's, such as Node's and Cluster's.
type Ref struct {
	Kind string `json:"kind"`
	// Cluster is the cluster of a node or record, or of another cluster's object.
	Cluster   string `json:"cluster,omitempty"`
	Namespace string `json:"namespace,omitempty"`
	Name      string `json:"name,omitempty"`
}

// The kinds that have a constructor.
const (
	kindCluster = "cluster"
	kindNode    = "node"
	kindRecord  = "record"
	kindTunnel  = "tunnel"
)

// Cluster refers to a cluster.
func Cluster(name string) Ref { return Ref{Kind: kindCluster, Name: name} }

// Node refers to a node of any cluster as gossip knows it. An own node's object is an Object.
func Node(cluster, name string) Ref { return Ref{Kind: kindNode, Cluster: cluster, Name: name} }

// Record refers to what a node publishes, or a cluster if name is empty.
func Record(cluster, name string) Ref { return Ref{Kind: kindRecord, Cluster: cluster, Name: name} }

// Tunnel refers to the tunnel to a node.
func Tunnel(cluster, name string) Ref { return Ref{Kind: kindTunnel, Cluster: cluster, Name: name} }

// Object refers to a Kubernetes object. Namespace is empty for kinds without.
func Object(kind, namespace, name string) Ref {
	return Ref{Kind: kind, Namespace: namespace, Name: name}
}

// Named refers to anything else that has a kind and a name: "map backends". Name is empty if there is
// only one of that kind.
func Named(kind, name string) Ref { return Ref{Kind: kind, Name: name} }

// String returns the Problem's Object: "ServiceExport default/serve", "node us-east/n1".
func (r Ref) String() string {
	kind, path := r.Kind, []string{r.Cluster, r.Namespace, r.Name}
	if kind == kindTunnel {
		kind += " to"
	}
	of := ""
	if r.kubernetes() {
		if path = path[1:]; r.Cluster != "" {
			of = " of cluster " + r.Cluster
		}
	}
	name := strings.Join(nonEmpty(path), "/")
	if name == "" {
		return kind
	}
	return kind + " " + name + of
}

func (r Ref) kubernetes() bool {
	for _, c := range r.Kind {
		return unicode.IsUpper(c)
	}
	return false
}

func nonEmpty(texts []string) (out []string) {
	for _, t := range texts {
		if t != "" {
			out = append(out, t)
		}
	}
	return out
}

// Concerns reports whether it is a cluster, or something of that cluster.
func (r Ref) Concerns(cluster string) bool {
	return r.Cluster == cluster || r == Cluster(cluster)
}

// Problem returns a Problem about r. It is the only way to give a Problem a Ref, so that Ref and Object
// never disagree.
func (r Ref) Problem(p Problem) Problem {
	p.Ref, p.Object = r, r.String()
	return p
}
