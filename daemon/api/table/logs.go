package table

import (
	"time"

	"strait.io/strait/daemon/api"
)

// Logs shows lines of daemons' logs. Times are in the zone of now.
var Logs = Table[api.NodeLine]{
	Name: func(l api.NodeLine) string { return l.Node },
	Columns: []Column[api.NodeLine]{
		{Name: "TIME", Cell: func(l api.NodeLine, now time.Time) string { return clock(l.Time, now) }},
		{Name: "NODE", Cell: text(func(l api.NodeLine) string { return l.Node })},
		{Name: "LEVEL", Cell: text(func(l api.NodeLine) string { return l.Level })},
		{Name: "MESSAGE", Cell: text(func(l api.NodeLine) string { return l.Message })},
		{Name: "ABOUT", Cell: text(func(l api.NodeLine) string { return l.Attrs })},
	},
}
