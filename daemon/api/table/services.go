package table

import (
	"cmp"
	"fmt"
	"net/netip"
	"slices"
	"strings"

	"strait.io/strait/daemon/api"
)

// Services shows each service as a whole. Differences between ports are left to strait explain.
var Services = Table[api.Service]{
	Name: func(s api.Service) string { return s.Name },
	Columns: []Column[api.Service]{
		{Name: "SERVICE", Cell: text(func(s api.Service) string { return s.Name })},
		{Name: "TYPE", Cell: text(func(s api.Service) string { return s.Type })},
		{Name: "IP", Cell: text(func(s api.Service) string { return join(s.IPs, " ", netip.Addr.String) })},
		{Name: "EXPORTED BY", Cell: text(func(s api.Service) string { return strings.Join(s.Exporters, " ") })},
		{Name: "READY", Cell: text(ready)},
		{Name: "NEW CONNECTIONS GO TO", Cell: text(func(s api.Service) string { to, _ := destination(s); return to })},
		{Name: "WHY", Cell: text(Why)},
		{Name: "PORTS", Wide: true, Cell: text(ports)},
		{Name: "POLICIES", Wide: true, Cell: text(func(s api.Service) string { return strings.Join(s.Policies, ", ") })},
	},
}

// Why describes in a few words why connections to the service go where they go.
func Why(s api.Service) string {
	_, why := destination(s)
	return why
}

// ports lists the service's ports, each once.
func ports(s api.Service) string {
	var out []string
	for _, f := range s.Frontends {
		text := fmt.Sprintf("%d/%s", f.Addr.Port, f.Addr.Proto)
		if f.Port != "" {
			text += " (" + f.Port + ")"
		}
		if !slices.Contains(out, text) {
			out = append(out, text)
		}
	}
	return strings.Join(out, ", ")
}

func destination(s api.Service) (to, why string) {
	if len(s.Frontends) == 0 {
		if s.Type == "Headless" {
			return api.None, "names resolve to the pods"
		}
		return api.Bad + " nowhere", "no frontend is programmed: see strait status"
	}
	all := families(s)
	for _, fs := range all {
		for _, f := range fs {
			if f.Destination() != fs[0].Destination() || f.Why() != fs[0].Why() {
				return api.Warn + " differs by port", "strait explain " + s.Name
			}
		}
	}
	to, why = all[0][0].Destination(), all[0][0].Why()
	for _, fs := range all[1:] {
		if fs[0].Destination() != to || fs[0].Why() != why {
			return api.Warn + " differs by family", "strait explain " + s.Name
		}
	}
	return to, why
}

// families groups the service's frontends by IP family, in the order of its frontends.
func families(s api.Service) (out [][]api.Frontend) {
	at := map[string]int{}
	for _, f := range s.Frontends {
		i, known := at[f.Family()]
		if !known {
			i = len(out)
			at[f.Family()], out = i, append(out, nil)
		}
		out[i] = append(out[i], f)
	}
	return out
}

// ready shows how many of the service's endpoints are ready. It counts them by the IP family of the
// service's addresses, and shows one count if all families have the same.
func ready(s api.Service) string {
	var counts, named []string
	for _, fs := range families(s) {
		count := countReady(fs)
		counts, named = append(counts, count), append(named, fs[0].Family()+" "+count)
	}
	switch {
	case len(counts) == 0:
		return ""
	case len(counts) == 1 || counts[0] == counts[1]:
		return counts[0]
	}
	return strings.Join(named, " · ")
}

// countReady counts the endpoints behind frontends of one family. A pod counts once, however many
// ports it has.
func countReady(fs []api.Frontend) string {
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
