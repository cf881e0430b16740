package table

import (
	"fmt"
	"strings"

	"strait.io/strait/daemon/api"
)

// Exports shows what each cluster exports, and what is wrong with it.
var Exports = Table[api.Export]{
	Name: func(e api.Export) string { return e.Name },
	Columns: []Column[api.Export]{
		{Name: "EXPORT", Cell: text(func(e api.Export) string { return e.Name })},
		{Name: "CLUSTER", Cell: text(func(e api.Export) string { return e.Cluster })},
		{Name: "TYPE", Cell: text(func(e api.Export) string { return e.Type })},
		{Name: "READY", Cell: text(func(e api.Export) string {
			if e.Total == 0 {
				return ""
			}
			return fmt.Sprintf("%d/%d", e.Ready, e.Total)
		})},
		{Name: "SHARE", Cell: text(func(e api.Export) string { return api.Percent(e.Share) })},
		{Name: "STATE", Cell: text(exportState)},
		{Name: "PROBLEMS", Wide: true, Cell: text(func(e api.Export) string {
			lines := make([]string, len(e.Problems))
			for i, p := range e.Problems {
				lines[i] = strings.TrimSpace(string(p.Code) + " " + p.Finding())
			}
			return strings.Join(lines, "; ")
		})},
	},
}

// exportState is the worst of what is wrong with an export.
func exportState(e api.Export) string {
	if len(e.Problems) == 0 {
		return api.OK + " in force"
	}
	worst := e.Problems[0]
	for _, p := range e.Problems {
		if worst.Warning && !p.Warning {
			worst = p
		}
	}
	more := ""
	if n := len(e.Problems) - 1; n > 0 {
		more = fmt.Sprintf(", and %d more", n)
	}
	state := strings.TrimSpace(string(worst.Code) + " " + strings.TrimSpace(worst.Field+" "+worst.Message))
	return api.Glyph(worst) + " " + state + more
}
