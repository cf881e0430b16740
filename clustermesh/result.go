package clustermesh

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"unicode/utf8"
)

// PolicyResult is what a cluster's leader has made, by a ServicePolicy, of what other clusters share.
type PolicyResult struct {
	Policy string `cbor:"1,keyasint" json:"policy"`
	// Mirrored is how many mirrors the cluster has by it, and Imported how many imports that other
	// clusters share by a policy of this name.
	Mirrored int `cbor:"2,keyasint,omitempty" json:"mirrored,omitempty"`
	Imported int `cbor:"3,keyasint,omitempty" json:"imported,omitempty"`
	// Skipped are the first Services that are left out, sorted; SkippedMore counts the rest.
	Skipped     []SkippedSource `cbor:"4,keyasint,omitempty" json:"skipped,omitempty"`
	SkippedMore int             `cbor:"5,keyasint,omitempty" json:"skippedMore,omitempty"`
}

// SkippedSource is another cluster's Service that a policy leaves out.
type SkippedSource struct {
	// Source is its CLUSTER/NAMESPACE/NAME.
	Source  string `cbor:"1,keyasint" json:"source"`
	Reason  string `cbor:"2,keyasint" json:"reason"`
	Message string `cbor:"3,keyasint,omitempty" json:"message,omitempty"`
}

// maxReason is how long a SkippedSource's Message can be.
const maxReason = 1 << 9

// MaxNamed bounds the Services that all results of a record name: a record is gossiped as a whole, and
// what is for people must not make it too large.
const MaxNamed = 400

// Skip adds a Service that is left out. Call it in the order of the sources.
func (r *PolicyResult) Skip(source, reason, message string) {
	if len(r.Skipped) == MaxSkipped {
		r.SkippedMore++
		return
	}
	r.Skipped = append(r.Skipped, SkippedSource{source, reason, oneLine(message)})
}

// Equal reports whether two results are identical.
func (r PolicyResult) Equal(o PolicyResult) bool {
	return r.Policy == o.Policy && r.Mirrored == o.Mirrored && r.Imported == o.Imported && slices.Equal(r.Skipped, o.Skipped) && r.SkippedMore == o.SkippedMore
}

// Check returns an error unless a record can carry a result.
func (r PolicyResult) Check() error {
	if r.Policy == "" {
		return errors.New("it names no policy")
	}
	if r.Mirrored < 0 || r.Imported < 0 || r.SkippedMore < 0 || len(r.Skipped) > MaxSkipped {
		return fmt.Errorf("it counts %d, %d and %d Services, and lists %d", r.Mirrored, r.Imported, r.SkippedMore, len(r.Skipped))
	}
	errs := []error{CheckText(r.Policy, MaxName)}
	for _, s := range r.Skipped {
		errs = append(errs, CheckText(s.Source, 3*MaxName+2), checkWord("reason", s.Reason), checkMessage(s.Message))
	}
	return errors.Join(errs...)
}

// oneLine returns text, which may be an API server's, as checkMessage accepts it.
func oneLine(s string) string {
	s = strings.Map(func(r rune) rune {
		if unprintable(r) {
			return ' '
		}
		return r
	}, s)
	return strings.ToValidUTF8(s[:min(len(s), maxReason)], "")
}

// unprintable reports whether a terminal could take a rune for a command.
func unprintable(r rune) bool { return r < ' ' || r >= 0x7f && r < 0xa0 || r == utf8.RuneError }

// checkMessage accepts one line of text for people, with spaces.
func checkMessage(s string) error {
	if len(s) > maxReason || strings.IndexFunc(s, unprintable) >= 0 {
		return fmt.Errorf("%s is too long or cannot be printed", Quoted(s))
	}
	return nil
}
