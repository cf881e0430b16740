package clustermesh

import "slices"

// AnnotationAccept is the annotation of a Namespace that lists the other clusters whose Services are
// accepted there.
const AnnotationAccept = "strait.io/accept"

// AnnotationNodeKey is the annotation of a Node that says which key its machine signs with, by its
// fingerprint. It counts in a directory of YAML, whose owner writes it.
const AnnotationNodeKey = "strait.io/node-key"

// AcceptAll is the element of an Accept that means all clusters.
const AcceptAll ClusterName = "*"

// Accept says for some namespaces of this cluster whose Services are accepted there, by namespace. An
// empty list accepts none.
type Accept map[string][]ClusterName

// From reports whether a namespace accepts Services of a cluster, and whether it says anything.
func (a Accept) From(namespace string, c ClusterName) (accepts, says bool) {
	list, says := a[namespace]
	return slices.Contains(list, c) || slices.Contains(list, AcceptAll), says
}

// Equal reports whether both say the same.
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
