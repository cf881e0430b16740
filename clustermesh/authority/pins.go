package authority

import (
	"errors"
	"fmt"
	"net/netip"
	"path"
	"slices"
	"strings"

	"sigs.k8s.io/yaml"

	"strait.io/strait/clustermesh"
)

// Pins are the clusters that this cluster trusts, itself included.
type Pins map[clustermesh.ClusterName]Pin

// document is the form of pins in a file. It holds no secret.
type document struct {
	Clusters []Pin `json:"clusters"`
}

// ParsePins reads the YAML of Encode, or of an operator. It returns all mistakes at once, each with the
// path of its field.
func ParsePins(text []byte) (Pins, error) {
	var d document
	if err := yaml.UnmarshalStrict(text, &d); err != nil {
		return nil, fmt.Errorf("read pins: %w", err)
	}
	pins := Pins{}
	var errs []error
	for i, p := range d.Clusters {
		at := fmt.Sprintf("clusters[%d]", i)
		if _, twice := pins[p.Cluster]; twice {
			errs = append(errs, fmt.Errorf("%s.cluster: %s is pinned twice", at, p.Cluster))
		}
		for _, err := range p.mistakes() {
			errs = append(errs, fmt.Errorf("%s.%w", at, err))
		}
		pins[p.Cluster] = p
	}
	if len(d.Clusters) == 0 {
		errs = append(errs, errors.New("clusters: is empty: want at least this cluster's own pin"))
	}
	return pins, errors.Join(errs...)
}

// mistakes returns what is wrong with a pin, each error with its field.
func (p Pin) mistakes() (errs []error) {
	add := func(format string, args ...any) { errs = append(errs, fmt.Errorf(format, args...)) }
	if err := clustermesh.CheckName(string(p.Cluster)); err != nil {
		add("cluster: %w", err)
	}
	if len(p.Roots) == 0 || len(p.Roots) > 2 {
		add("roots: has %d keys: want one, or two while the root is rotated", len(p.Roots))
	}
	if slices.Contains(p.Roots, PublicKey{}) {
		add("roots: a key is zero")
	}
	for _, f := range []struct {
		name   string
		ranges []netip.Prefix
	}{{"pods", p.Pods}, {"nodes", p.Nodes}, {"endpoints", p.Endpoints}} {
		for i, r := range f.ranges {
			if err := clustermesh.CheckPrefix(r); err != nil {
				add("%s[%d]: %w", f.name, i, err)
			} else if r != r.Masked() {
				add("%s[%d]: %s has host bits set: did you mean %s?", f.name, i, r, r.Masked())
			}
		}
	}
	for i, r := range p.Revoked {
		if err := clustermesh.CheckFingerprint(r); err != nil {
			add("revoked[%d]: %w", i, err)
		}
	}
	for i, pattern := range p.Namespaces {
		if _, err := path.Match(pattern, ""); err != nil || pattern == "" {
			add("namespaces[%d]: %q is not a pattern, as in shop or team-*", i, pattern)
		}
	}
	return errs
}

// Encode returns the pins as YAML, sorted by cluster.
func (ps Pins) Encode() []byte {
	return must(yaml.Marshal(document{ps.sorted()}))
}

func (ps Pins) sorted() []Pin {
	out := make([]Pin, 0, len(ps))
	for _, p := range ps {
		out = append(out, p)
	}
	slices.SortFunc(out, func(a, b Pin) int { return strings.Compare(string(a.Cluster), string(b.Cluster)) })
	return out
}

// Overlap returns an error that names two clusters whose ranges overlap, with the ranges. The
// machines of several clusters can be in one network, so ranges of nodes may overlap each other.
func (ps Pins) Overlap() error {
	for _, a := range ps.sorted() {
		for _, b := range ps.sorted() {
			if a.Cluster == b.Cluster {
				continue
			}
			for _, p := range a.Pods {
				for _, q := range slices.Concat(b.Pods, b.Nodes, b.Endpoints) {
					if p.Overlaps(q) {
						return fmt.Errorf("the pods of cluster %s have %s, and cluster %s has %s: give every cluster ranges of its own", a.Cluster, p, b.Cluster, q)
					}
				}
			}
		}
	}
	return nil
}

// SharedNodes describes the overlaps between the node ranges of clusters. An overlap is right if their
// machines are in one network, but then each cluster could claim addresses of the other's machines.
func (ps Pins) SharedNodes() (out []string) {
	sorted := ps.sorted()
	for i, a := range sorted {
		for _, b := range sorted[i+1:] {
			for _, p := range a.Nodes {
				if j := slices.IndexFunc(b.Nodes, p.Overlaps); j >= 0 {
					out = append(out, fmt.Sprintf("cluster %s has nodes in %s, and cluster %s in %s", a.Cluster, p, b.Cluster, b.Nodes[j]))
				}
			}
		}
	}
	return out
}
