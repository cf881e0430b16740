package clustermesh

import (
	"fmt"
	"path"
	"slices"
)

// alwaysBarred namespaces never leave their cluster: their Services are the cluster's own machinery.
var alwaysBarred = []string{"kube-system", "kube-public", "kube-node-lease"}

// Barred are patterns, as of path.Match, of further namespaces that take no part in the clusterset: exports,
// global services and imports alike.
type Barred []string

// Check returns an error that names the first pattern that is none.
func (b Barred) Check() error {
	for _, p := range b {
		if _, err := path.Match(p, ""); err != nil || p == "" {
			return fmt.Errorf("namespace pattern %q: write a name, or a pattern such as team-*", p)
		}
	}
	return nil
}

// Why says for people why a service must not take part; empty where it may. default/kubernetes is every
// cluster's own API server. A pattern that is none bars nothing.
func (b Barred) Why(s ServiceName) string {
	if slices.Contains(alwaysBarred, s.Namespace) || s == (ServiceName{Namespace: "default", Name: "kubernetes"}) {
		return "Services of the cluster itself are barred"
	}
	for _, p := range b {
		if ok, _ := path.Match(p, s.Namespace); ok {
			return fmt.Sprintf("namespace %s is barred by the pattern %q of the configuration", s.Namespace, p)
		}
	}
	return ""
}
