// Package replicate mirrors Services between clusters in which nothing of strait runs, by policies.
//
// Inputs are a file that lists clusters, with their kubeconfigs and the Services to share, and what
// their API servers have; outputs are Services and EndpointSlices at these. A shell around client-go:
// package policy decides what to write. It must not know flags or how text is printed.
package replicate

import (
	"errors"
	"fmt"
	"path"
	"path/filepath"
	"regexp"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/validation"
	"sigs.k8s.io/yaml"

	"strait.io/strait/clustermesh/policy"
)

// File lists clusters with the Services that the others get. It is the file of
// create_svc_endpoints.py of CiscoDevNet's multicloud-integrations.
type File struct {
	Clusters []FileCluster `json:"clusters"`
}

// FileCluster is one of them.
type FileCluster struct {
	Name string `json:"name"`
	// Kubeconfig is a file. A relative path is from the folder of the File.
	Kubeconfig string `json:"kubeconfig"`
	// Context is one of the kubeconfig; empty is its current one.
	Context string `json:"context,omitempty"`
	// Services are those that the others get.
	Services []Match `json:"services,omitempty"`
	// NameMatches go for all Services of the cluster that have none of their own.
	NameMatches []string `json:"nameMatches,omitempty"`
	// Annotations are keys, or patterns of keys, of the annotations that mirrors have too; see
	// policy.Copy. Without any, none is copied.
	Annotations []string `json:"annotations,omitempty"`
}

// Match selects Services.
type Match struct {
	// Namespace is empty for all.
	Namespace string `json:"namespace,omitempty"`
	// NameMatches are regular expressions (RE2) for whole names. Without any, all names match.
	NameMatches []string `json:"nameMatches,omitempty"`
}

// ParseFile reads a File that is in a folder. It returns all mistakes at once, each with the path of
// its field.
func ParseFile(text []byte, folder string) (File, error) {
	var f File
	if err := yaml.UnmarshalStrict(text, &f); err != nil {
		return f, err
	}
	var errs []error
	wrong := func(at, format string, args ...any) {
		errs = append(errs, fmt.Errorf("%s: %w", at, fmt.Errorf(format, args...)))
	}
	if len(f.Clusters) < 2 {
		wrong("clusters", "has %d: Services are mirrored between two or more", len(f.Clusters))
	}
	seen := map[string]bool{}
	for i := range f.Clusters {
		c, at := &f.Clusters[i], fmt.Sprintf("clusters[%d]", i)
		if bad := validation.IsDNS1123Label(c.ID()); len(bad) > 0 {
			wrong(at+".name", "%q: %s", c.Name, bad[0])
		}
		if seen[c.ID()] {
			wrong(at+".name", "%q is there twice (upper and lower case are alike)", c.Name)
		}
		seen[c.ID()] = true
		if c.Kubeconfig == "" {
			wrong(at+".kubeconfig", "is missing")
		} else if !filepath.IsAbs(c.Kubeconfig) {
			c.Kubeconfig = filepath.Join(folder, c.Kubeconfig)
		}
		for j, pattern := range c.Annotations {
			if _, err := path.Match(pattern, ""); err != nil || pattern == "" {
				wrong(fmt.Sprintf("%s.annotations[%d]", at, j), "%q: want a key or a pattern, as in owner or team/*", pattern)
			}
		}
		lists := map[string][]string{at: c.NameMatches}
		for j, m := range c.Services {
			at := fmt.Sprintf("%s.services[%d]", at, j)
			if bad := validation.IsDNS1123Label(m.Namespace); m.Namespace != "" && len(bad) > 0 {
				wrong(at+".namespace", "%q: %s", m.Namespace, bad[0])
			}
			lists[at] = m.NameMatches
		}
		for at, list := range lists {
			for j, re := range list {
				if _, err := regexp.Compile(re); err != nil {
					wrong(fmt.Sprintf("%s.nameMatches[%d]", at, j), "%q: %w", re, err)
				}
			}
		}
	}
	return f, errors.Join(errs...)
}

// ID is the name of a cluster as an id, which has no upper case.
func (c FileCluster) ID() string { return strings.ToLower(c.Name) }

// Policies returns what a File means: one policy for each cluster that shares Services.
func (f File) Policies() (out []policy.Policy) {
	for _, c := range f.Clusters {
		p := policy.Policy{
			TypeMeta: policy.Type, ObjectMeta: metav1.ObjectMeta{Name: c.ID()},
			Spec: policy.Spec{
				From: []string{c.ID()}, As: policy.Mirror, CreateNamespace: true,
				Copy: policy.Copy{Annotations: c.Annotations},
			},
		}
		for _, other := range f.Clusters {
			if other.ID() != c.ID() {
				p.Spec.To = append(p.Spec.To, other.ID())
			}
		}
		for _, m := range c.Services {
			t := policy.Term{Names: m.NameMatches}
			if len(t.Names) == 0 {
				t.Names = c.NameMatches
			}
			if m.Namespace != "" {
				t.Namespaces = []string{m.Namespace}
			} else if len(t.Names) == 0 {
				t.Names = []string{".*"}
			}
			p.Spec.Select = append(p.Spec.Select, t)
		}
		if len(p.Spec.Select) > 0 {
			out = append(out, p)
		}
	}
	return out
}
