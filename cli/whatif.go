package cli

import (
	"fmt"
	"strings"

	"strait.io/strait/daemon/api"
)

// maxMoved is how many services are shown, unless one was asked for.
const maxMoved = 50

func (a *App) ShowWhatIf(p Printer, w *api.WhatIf, whole bool) {
	p.Line("if %s: connections to %s of %s would go elsewhere", w.Change, api.Count(len(w.Moved), "frontend"), api.Count(w.Services, "service"))
	if n := len(w.Alone); n > 0 {
		p.Line("%s no other endpoint serves %s, so what is drained stays in use: %s", api.Warn, api.Count(n, "service"), Some(w.Alone, 5))
	}
	var rows [][]string
	for _, m := range w.Moved[:min(len(w.Moved), maxMoved)] {
		rows = append(rows, []string{m.Service, m.Addr.String(), m.Before, m.After, overloaded(m)})
	}
	if len(rows) > 0 {
		p.Line("")
		p.Table([]string{"SERVICE", "FRONTEND", "NOW", "THEN", "OVERLOADED"}, rows)
	}
	if n := len(w.Moved) - len(rows); n > 0 {
		p.Line("and %d more; -o json lists all", n)
	}
	if !whole {
		return
	}
	for _, m := range w.Moved {
		p.Line("")
		p.Line("%s", m.Addr)
		var rows [][]string
		for _, e := range m.Endpoints {
			reason := e.Reason
			if e.Overloaded {
				reason = api.Warn + " more than it can bear; " + reason
			}
			rows = append(rows, []string{e.Addr.String(), strings.Trim(e.Cluster+"/"+e.Node, "/"), api.Percent(e.Before), api.Percent(e.After), reason})
		}
		p.Table([]string{"ENDPOINT", "WHERE", "NOW", "THEN", "REASON"}, rows)
	}
}

// overloaded describes how many endpoints would get more than they can bear.
func overloaded(m api.Moved) string {
	n := 0
	for _, e := range m.Endpoints {
		if e.Overloaded {
			n++
		}
	}
	if n == 0 {
		return api.None
	}
	return fmt.Sprintf("%s %s", api.Warn, api.Count(n, "endpoint"))
}

// Some lists the first names.
func Some(names []string, most int) string {
	if len(names) <= most {
		return strings.Join(names, ", ")
	}
	return fmt.Sprintf("%s and %d more", strings.Join(names[:most], ", "), len(names)-most)
}
