package table

import (
	"fmt"
	"time"

	"strait.io/strait/daemon/api"
)

// Hops shows the way of a record, from the node that was asked to the writer. Times are in the zone of now.
var Hops = Table[api.Hop]{
	Name: func(h api.Hop) string { return h.Node },
	Columns: []Column[api.Hop]{
		{Name: "HOP", Cell: text(hopName)},
		{Name: "VERSION", Cell: text(func(h api.Hop) string { return h.Stamp })},
		{Name: "AGE", Moving: true, Cell: text(func(h api.Hop) string {
			if h.At.IsZero() {
				return ""
			}
			return api.Age(time.Duration(h.Age * float64(time.Second)))
		})},
		{Name: "AT", Moving: true, Cell: func(h api.Hop, now time.Time) string {
			if h.At.IsZero() {
				return api.None
			}
			return clock(h.At, now) + h.At.Format(".000")
		}},
		{Name: "TOOK", Moving: true, Cell: text(took)},
		{Name: "HOW", Cell: text(how)},
		{Name: "FROM", Wide: true, Cell: text(func(h api.Hop) string { return h.From })},
	},
}

func hopName(h api.Hop) string {
	name := api.Short(h.Node, nameWidth)
	switch {
	case h.Error != "":
		return api.Unknown + " " + name
	case h.Apart:
		return "… " + name
	}
	return name
}

// how is how the version that a hop holds came there.
func how(h api.Hop) string {
	switch {
	case h.Unasked:
		return "not asked"
	case h.Error != "":
		return "no answer"
	case h.Written:
		return "written"
	case h.From != "":
		return "passed on"
	case h.Stamp != "":
		return "read from disk"
	}
	return ""
}

// took is how long a record took from the next hop: not more exact than the clocks are.
func took(h api.Hop) string {
	if h.Took == nil {
		return ""
	}
	switch t, within := *h.Took*1000, h.Within*1000; {
	case t <= within:
		return fmt.Sprintf("< %.1f ms", max(0.1, t+within))
	case within < t/20:
		return fmt.Sprintf("%.1f ms", t)
	default:
		return fmt.Sprintf("%.1f–%.1f ms", t-within, t+within)
	}
}
