// Package traffic is what calls and what answers in the demo: small HTTP and UDP servers that say who
// they are, and a client that counts honestly.
//
// A client is a process in a pod or on a node; orders go in as lines of JSON, one line per finished call
// comes out. One call is one new connection with one second in all and no retry. The package must not
// know strait, nor how its processes came to be where they are.
package traffic

import (
	"fmt"
	"net/netip"
	"regexp"
)

// Hello is what a backend says of itself.
type Hello struct {
	Cluster string     `json:"cluster,omitempty"`
	Node    string     `json:"node,omitempty"`
	Pod     string     `json:"pod,omitempty"`
	Address netip.Addr `json:"address,omitzero"`
}

// String is the answer that a backend gives, with a newline at its end.
func (h Hello) String() string {
	return fmt.Sprintf("hello from cluster %s (Node: %s Pod: %s Address: %s)\n", h.Cluster, h.Node, h.Pod, h.Address)
}

var hello = regexp.MustCompile(`^hello from cluster (\S+) \(Node: (\S+) Pod: (\S+) Address: (\S+)\)\n$`)

// ParseHello reads the form that String writes, and nothing else.
func ParseHello(text string) (Hello, error) {
	m := hello.FindStringSubmatch(text)
	if m == nil {
		return Hello{}, fmt.Errorf("answer %q: want %q", clip(text), "hello from cluster … (Node: … Pod: … Address: …)")
	}
	addr, err := netip.ParseAddr(m[4])
	if err != nil {
		return Hello{}, fmt.Errorf("answer %q: %w", clip(text), err)
	}
	return Hello{m[1], m[2], m[3], addr}, nil
}

func clip(s string) string {
	if len(s) > 100 {
		return s[:100] + "…"
	}
	return s
}
