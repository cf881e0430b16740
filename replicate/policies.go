package replicate

import (
	"errors"
	"fmt"
	"slices"

	"strait.io/strait/clustermesh/policy"
)

// ParsePolicies reads ServicePolicy documents for the clusters of a File. It returns all mistakes at once,
// each with the policy and the path of its field.
func (f File) ParsePolicies(text []byte) ([]policy.Policy, error) {
	out, err := policy.Decode(text)
	if err != nil {
		return nil, err
	}
	if len(out) == 0 {
		return nil, fmt.Errorf("there is no %s in it", policy.Kind)
	}
	var errs []error
	for _, p := range out {
		wrong := func(format string, args ...any) {
			errs = append(errs, fmt.Errorf("%s %q: %w", policy.Kind, p.Name, fmt.Errorf(format, args...)))
		}
		if p.Spec.As != policy.Mirror {
			wrong("spec.as: write mirror; import and join need strait in the clusters")
		}
		for _, list := range []struct {
			field string
			ids   []string
		}{{"from", p.Spec.From}, {"to", p.Spec.To}} {
			for i, id := range list.ids {
				if id != "*" && !slices.ContainsFunc(f.Clusters, func(c FileCluster) bool { return c.ID() == id }) {
					wrong("spec.%s[%d]: no cluster of the file is called %q", list.field, i, id)
				}
			}
		}
		if slices.ContainsFunc(f.Policies(), func(q policy.Policy) bool { return q.Name == p.Name }) {
			wrong("metadata.name: the services of cluster %s have this name; use another", p.Name)
		}
	}
	return out, errors.Join(errs...)
}
