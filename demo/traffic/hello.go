// Package traffic holds the demo's servers and clients: small HTTP and UDP servers that say who
// they are, and a client that reports every call.
//
// A client is a process in a pod or on a node. It reads orders as lines of JSON and writes one line
// per finished call. Each call is a new connection with a total timeout of one second and no retry.
// The package must not know strait, nor how its processes are started.
package traffic

import (
	"fmt"
	"net/netip"
	"regexp"
)

// Hello is how a backend introduces itself.
type Hello struct {
	Cluster string     `json:"cluster,omitempty"`
	Node    string     `json:"node,omitempty"`
	Pod     string     `json:"pod,omitempty"`
	Address netip.Addr `json:"address,omitzero"`
}

// String returns a backend's answer, with a final newline.
func (h Hello) String() string {
	return fmt.Sprintf("hello from cluster %s (Node: %s Pod: %s Address: %s)\n", h.Cluster, h.Node, h.Pod, h.Address)
}

var hello = regexp.MustCompile(`^hello from cluster (\S+) \(Node: (\S+) Pod: (\S+) Address: (\S+)\)\n$`)

// ParseHello parses the form that String returns, and rejects any other.
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
