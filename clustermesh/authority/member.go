package authority

import (
	"fmt"
	"strconv"
	"strings"

	"sigs.k8s.io/yaml"
)

// Member is a cluster as it tells others of itself, so that they can pin it and find it: one
// document, without any secret, which a Git repository can hold.
type Member struct {
	Pin `json:",inline"`
	// Seeds are addresses of its nodes, as HOST:PORT, at which others find it.
	Seeds []string `json:"seeds,omitempty"`
}

// MaxSeeds bounds the seeds of a member. Gossip names its other nodes.
const MaxSeeds = 20

// ParseMember reads the YAML of Encode, or of an operator.
func ParseMember(text []byte) (Member, error) {
	var m Member
	if err := yaml.UnmarshalStrict(text, &m); err != nil {
		return m, fmt.Errorf("read member: %w", err)
	}
	if mistakes := m.mistakes(); len(mistakes) > 0 {
		return m, mistakes[0]
	}
	if len(m.Seeds) > MaxSeeds {
		return m, fmt.Errorf("seeds: has %d addresses: list at most %d", len(m.Seeds), MaxSeeds)
	}
	for i, s := range m.Seeds {
		if !isHostPort(s) {
			return m, fmt.Errorf("seeds[%d]: %q: want HOST:PORT", i, s)
		}
	}
	return m, nil
}

func isHostPort(s string) bool {
	at := strings.LastIndexByte(s, ':')
	if at < 1 {
		return false
	}
	host := s[:at]
	n, err := strconv.ParseUint(s[at+1:], 10, 16)
	bare := !strings.ContainsAny(host, ":[] \t\n")
	return err == nil && n > 0 && (bare || strings.HasPrefix(host, "[") && strings.HasSuffix(host, "]"))
}

// Encode returns the member as YAML.
func (m Member) Encode() []byte { return must(yaml.Marshal(m)) }
