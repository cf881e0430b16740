package api

import (
	"cmp"
	"fmt"
	"strings"
)

// family names the frontend's IP family.
func (f Frontend) family() string {
	if f.Addr.IP.Is4() {
		return "IPv4"
	}
	return "IPv6"
}

// SameFamily reports whether an endpoint is of the frontend's IP family. An endpoint of the other
// one is listed, but can never be behind the frontend.
func (f Frontend) SameFamily(e Endpoint) bool { return e.Addr.Addr().Unmap().Is4() == f.Addr.IP.Is4() }

// families groups the service's frontends by IP family, in the order of its frontends.
func (s Service) families() (out [][]Frontend) {
	at := map[string]int{}
	for _, f := range s.Frontends {
		i, known := at[f.family()]
		if !known {
			i = len(out)
			at[f.family()], out = i, append(out, nil)
		}
		out[i] = append(out[i], f)
	}
	return out
}

// ready shows how many of the service's endpoints are ready. It counts them by the IP family of the
// service's addresses, and shows one count if all families have the same.
func (s Service) ready() string {
	var counts, named []string
	for _, fs := range s.families() {
		count := countReady(fs)
		counts, named = append(counts, count), append(named, fs[0].family()+" "+count)
	}
	switch {
	case len(counts) == 0:
		return None
	case len(counts) == 1 || counts[0] == counts[1]:
		return counts[0]
	}
	return strings.Join(named, " · ")
}

// countReady counts the endpoints behind frontends of one family. A pod counts once, however many
// ports it has.
func countReady(fs []Frontend) string {
	type identity struct{ cluster, pod string }
	seen := map[identity]bool{}
	for _, f := range fs {
		for _, e := range f.Endpoints {
			if !f.SameFamily(e) {
				continue
			}
			id := identity{e.Cluster, cmp.Or(e.Pod, e.Addr.Addr().String())}
			was, again := seen[id]
			seen[id] = e.Ready && (was || !again)
		}
	}
	ready := 0
	for _, ok := range seen {
		if ok {
			ready++
		}
	}
	return fmt.Sprintf("%d/%d", ready, len(seen))
}
