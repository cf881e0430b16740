package clustermesh

import (
	"maps"
	"slices"
)

// AnnotationAccept is the annotation of a Namespace that lists the other clusters whose Services are
// accepted there.
const AnnotationAccept = "strait.io/accept"

// AnnotationNodeKey is the annotation of a Node that has the key that its machine signs with, by its
// fingerprint. It counts in a directory of YAML, whose owner writes it.
const AnnotationNodeKey = "strait.io/node-key"

// AcceptAll is the element of an Accept that means all clusters.
const AcceptAll ClusterName = "*"

// Accept is whose Services some namespaces of this cluster accept, by namespace. An
// empty list accepts none.
type Accept map[string][]ClusterName

// From reports whether a namespace accepts Services of a cluster, and whether it is listed.
func (a Accept) From(namespace string, c ClusterName) (accepts, says bool) {
	list, says := a[namespace]
	return slices.Contains(list, c) || slices.Contains(list, AcceptAll), says
}

// Equal reports whether both are the same.
func (a Accept) Equal(b Accept) bool {
	if len(a) != len(b) {
		return false
	}
	for ns, list := range a {
		if other, says := b[ns]; !says || !slices.Equal(list, other) {
			return false
		}
	}
	return true
}

// LocalNamespaces is which namespaces of a cluster are local: no Service there is shared with other clusters or
// taken from them.
type LocalNamespaces struct {
	// Marked are the namespaces with the annotation; Others is what counts for all others.
	Marked map[string]bool
	Others bool
}

// Has reports whether a namespace is local.
func (l LocalNamespaces) Has(namespace string) bool {
	if local, says := l.Marked[namespace]; says {
		return local
	}
	return l.Others
}

// Equal reports whether both are the same.
func (l LocalNamespaces) Equal(m LocalNamespaces) bool {
	return l.Others == m.Others && maps.Equal(l.Marked, m.Marked)
}
