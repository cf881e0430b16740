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

// SimilarServices returns the names of services that a person may have meant by name: the same name
// in another namespace, or a spelling at most two letters away. At most three, in the services'
// order.
func SimilarServices(services []Service, name string) (out []string) {
	_, base, _ := strings.Cut(name, "/")
	for _, s := range services {
		_, other, _ := strings.Cut(s.Name, "/")
		if len(out) < 3 && (other == base || spellingDistance(s.Name, name) <= 2) {
			out = append(out, s.Name)
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
