package table

import (
	"strings"
	"time"

	"strait.io/strait/daemon/api"
)

// Timeline shows what happened, a row for each cause. Times are in the zone of now.
var Timeline = Table[*api.Event]{
	Name: func(e *api.Event) string { return e.Subject },
	Columns: []Column[*api.Event]{
		{Name: "TIME", Cell: func(e *api.Event, now time.Time) string { return clock(e.From, now) }},
		{Name: "UNTIL", Wide: true, Cell: func(e *api.Event, now time.Time) string { return clock(e.To, now) }},
		{Name: "NOTED BY", Cell: text(func(e *api.Event) string {
			if len(e.Nodes) == 1 {
				return e.Nodes[0]
			}
			return api.Count(len(e.Nodes), "node")
		})},
		{Name: "WHAT", Cell: text(func(e *api.Event) string { return e.Subject + " " + strings.Join(e.Texts, ", ") })},
		{Name: "EFFECT", Cell: text((*api.Event).Effect)},
		{Name: "ALSO", Wide: true, Cell: text(func(e *api.Event) string {
			return join(e.Also, "; ", func(c api.Cause) string { return c.Subject + " " + c.Text })
		})},
	},
}

// clock is a time of day, with the date unless that is today's.
func clock(t, now time.Time) string {
	t = t.In(now.Location())
	if t.Format(time.DateOnly) == now.Format(time.DateOnly) {
		return t.Format(time.TimeOnly)
	}
	return t.Format(time.DateTime)
}
