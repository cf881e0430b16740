package object

import (
	"fmt"
	"strings"

	"strait.io/strait/clustermesh"
	"strait.io/strait/internal/problem"
)

// annotationLocal is Cilium's annotation of a Namespace. It is read as Cilium reads it: any value
// but "true", case-insensitively, makes the Namespace local. Without it, Config.LocalByDefault
// decides.
const annotationLocal = "clustermesh.cilium.io/global"

// localNamespaces returns the namespaces whose annotation decides whether their Services stay in the
// cluster, and its value.
func localNamespaces(objs []*Namespace, r *report) map[string]bool {
	out := map[string]bool{}
	for _, n := range objs {
		value, says := n.annotations[annotationLocal]
		if !says {
			continue
		}
		switch strings.ToLower(value) {
		case "true":
			out[n.Name] = false
			continue
		case "false":
		default:
			r.on("Namespace", "", n.Name).problem(problem.ValueInvalid, path(annotationLocal),
				fmt.Sprintf("%q is neither true nor false: counts as false", value), `write "true" or "false"`)
		}
		out[n.Name] = true
	}
	return out
}

// stays returns why a Service is not shared with other clusters; empty if it may be.
func (l *reader) stays(s clustermesh.ServiceName) string {
	if why := l.barred.Why(s); why != "" {
		return why
	}
	switch {
	case !l.local.Has(s.Namespace):
		return ""
	case l.local.Marked[s.Namespace]:
		return fmt.Sprintf("namespace %s is local by its annotation %s", s.Namespace, annotationLocal)
	}
	return fmt.Sprintf("namespace %s is not marked by the annotation %s, and source.kubernetes.defaultGlobalNamespace is false", s.Namespace, annotationLocal)
}
