package clustermesh

// Share is what a ServicePolicy shares of the cluster that has it.
type Share struct {
	Policy string `json:"policy"`
	// As is "import", "mirror" or "join".
	As string `json:"as"`
	// From and To are the clusters that the policy names; nil means all.
	From []ClusterName `json:"from,omitempty"`
	To   []ClusterName `json:"to,omitempty"`
	// Selected is how many of the cluster's Services the policy selects; 0 if the cluster is not one
	// whose Services it shares. Shared is how many of these it shares, and Joined how many of the
	// cluster's Services get backends by it.
	Selected int `json:"selected"`
	Shared   int `json:"shared"`
	Joined   int `json:"joined,omitempty"`
	// Skipped are the Services that it selects and does not share, sorted, at most MaxSkipped;
	// SkippedMore counts the rest.
	Skipped     []SkippedService `json:"skipped,omitempty"`
	SkippedMore int              `json:"skippedMore,omitempty"`
}

// MaxSkipped bounds Share.Skipped.
const MaxSkipped = 20

// SkippedService is a Service that a policy leaves out.
type SkippedService struct {
	Service ServiceName `json:"service"`
	// Reason is one word, as in a condition: "ExternalName".
	Reason  string `json:"reason"`
	Message string `json:"message"`
}

// Skip adds a Service that is left out.
func (s *Share) Skip(name ServiceName, reason, message string) {
	if len(s.Skipped) == MaxSkipped {
		s.SkippedMore++
		return
	}
	s.Skipped = append(s.Skipped, SkippedService{name, reason, message})
}
