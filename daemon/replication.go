package daemon

import (
	"fmt"

	"strait.io/strait/clustermesh/policy"
)

// ReplicationConfig is a ServicePolicy in the configuration: the same document as in an API server,
// where apiVersion and kind can be left out.
type ReplicationConfig struct {
	APIVersion string              `json:"apiVersion,omitempty"`
	Kind       string              `json:"kind,omitempty"`
	Metadata   ReplicationMetadata `json:"metadata"`
	Spec       policy.Spec         `json:"spec"`
}

// ReplicationMetadata names a policy.
type ReplicationMetadata struct {
	Name string `json:"name"`
}

func (r ReplicationConfig) policy() policy.Policy {
	out := policy.Policy{TypeMeta: policy.Type, Spec: r.Spec}
	out.Name = r.Metadata.Name
	if r.APIVersion != "" {
		out.APIVersion = r.APIVersion
	}
	if r.Kind != "" {
		out.Kind = r.Kind
	}
	return out
}

// policies returns the policies of the configuration.
func (c Config) policies() (out []policy.Policy) {
	for _, r := range c.Replication {
		out = append(out, r.policy())
	}
	return out
}

func (c Config) validateReplication(m *mistakes) {
	names := map[string]int{}
	for i, p := range c.policies() {
		field := func(name string) string { return fmt.Sprintf("replication[%d].%s", i, name) }
		for _, e := range policy.Validate(p) {
			m.add(field(e.Field), "%s", e.ErrorBody())
		}
		if first, twice := names[p.Name]; twice {
			m.add(field("metadata.name"), "%q is the name of replication[%d] too: give each policy its own", p.Name, first)
		} else {
			names[p.Name] = i
		}
	}
}
