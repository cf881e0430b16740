package cli

import (
	"fmt"
	"strings"

	"strait.io/strait/daemon/api"
	"strait.io/strait/daemon/api/table"
)

// maxMoved is how many services are shown, unless one was asked for.
const maxMoved = 50

func (a *App) ShowWhatIf(p Printer, w *api.WhatIf, whole bool) {
	for _, line := range WhatIfLines(w) {
		p.Line("%s", line)
	}
	shown := w.Moved[:min(len(w.Moved), maxMoved)]
	if len(shown) > 0 {
		p.Line("")
		Show(a, p, table.Moved, shown)
	}
	if n := len(w.Moved) - len(shown); n > 0 {
		p.Line("and %d more; -o json lists all", n)
	}
	if !whole {
		return
	}
	for _, m := range w.Moved {
		p.Line("")
		p.Line("%s", m.Addr)
		Show(a, p, table.MovedEndpoints, m.Endpoints)
	}
}

// WhatIfLines sum up what a change would do.
func WhatIfLines(w *api.WhatIf) []string {
	lines := []string{fmt.Sprintf("if %s: connections to %s of %s would go elsewhere", w.Change, api.Count(len(w.Moved), "frontend"), api.Count(w.Services, "service"))}
	if n := len(w.Alone); n > 0 {
		lines = append(lines, fmt.Sprintf("%s no other endpoint serves %s, so what is drained stays in use: %s", api.Warn, api.Count(n, "service"), Some(w.Alone, 5)))
	}
	return lines
}

// MostNamed is how many nodes a row or a finding names.
const MostNamed = 3

// Some lists the first names.
func Some(names []string, most int) string {
	if len(names) <= most {
		return strings.Join(names, ", ")
	}
	return fmt.Sprintf("%s and %d more", strings.Join(names[:most], ", "), len(names)-most)
}
