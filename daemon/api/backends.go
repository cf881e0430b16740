package api

import (
	"strings"

	"strait.io/strait/internal/l4"
)

// Backend is one endpoint to which new connections to a frontend can go.
type Backend struct {
	// Service is "namespace/name".
	Service  string  `json:"service"`
	Frontend l4.Addr `json:"frontend"`
	// Port is the Service port's name, if it has one.
	Port string `json:"port,omitempty"`
	// InKernel is false when the kernel's map of the frontend differs from the plan.
	InKernel bool `json:"inKernel"`
	Endpoint
}

// Refusing is a frontend without a backend: connections to it are refused.
type Refusing struct {
	Service  string  `json:"service"`
	Frontend l4.Addr `json:"frontend"`
	Port     string  `json:"port,omitempty"`
}

// BackendList is the answer of GET /v1/backends.
type BackendList struct {
	Meta
	SeenFrom Viewpoint `json:"seenFrom"`
	Items    []Backend `json:"items"`
	// Refusing lists the frontends that have no item above.
	Refusing []Refusing `json:"refusing"`
}

// NewBackendList makes an answer of the backends of one service, or of all if name is "". It is
// false if the list has no service of that name.
func NewBackendList(l *ServiceList, name string) (BackendList, bool) {
	out := BackendList{Meta{APIVersion, KindBackends}, l.SeenFrom, []Backend{}, []Refusing{}}
	found := name == ""
	for _, s := range l.Items {
		if name != "" && s.Name != name {
			continue
		}
		found = true
		for _, f := range s.Frontends {
			used := f.backends(s.Name)
			out.Items = append(out.Items, used...)
			if len(used) == 0 {
				out.Refusing = append(out.Refusing, Refusing{s.Name, f.Addr, f.Port})
			}
		}
	}
	return out, found
}

// backends returns the frontend's endpoints that have a share, in the list's order.
func (f Frontend) backends(service string) (out []Backend) {
	for _, e := range f.Endpoints {
		if e.Share > 0 {
			out = append(out, Backend{service, f.Addr, f.Port, f.InKernel, e})
		}
	}
	return out
}

// SimilarServices returns the names of services that a person may have meant by name, as Similar
// does.
func SimilarServices(services []Service, name string) []string {
	names := make([]string, len(services))
	for i, s := range services {
		names[i] = s.Name
	}
	return Similar(names, name)
}

// Similar returns the names that a person may have meant by name: the same last part elsewhere,
// such as in another namespace, or a spelling at most two letters away. At most three, in the
// names' order.
func Similar(names []string, name string) (out []string) {
	base := name[strings.Index(name, "/")+1:]
	for _, n := range names {
		other := n[strings.Index(n, "/")+1:]
		near := spellingDistance(n, name) <= 2 || !strings.Contains(name, "/") && spellingDistance(other, base) <= 2
		if len(out) < 3 && (other == base || near) {
			out = append(out, n)
		}
	}
	return out
}

// spellingDistance is Levenshtein's: letters to add, drop or change to get from a to b.
func spellingDistance(a, b string) int {
	row := make([]int, len(b)+1)
	for j := range row {
		row[j] = j
	}
	for i := range len(a) {
		diagonal := row[0]
		row[0] = i + 1
		for j := range len(b) {
			change := diagonal
			if a[i] != b[j] {
				change++
			}
			diagonal = row[j+1]
			row[j+1] = min(change, row[j]+1, row[j+1]+1)
		}
	}
	return row[len(b)]
}
