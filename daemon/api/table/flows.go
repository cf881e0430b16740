package table

import (
	"cmp"
	"fmt"
	"strings"

	"strait.io/strait/daemon/api"
)

// Flows shows who calls whom now.
var Flows = Table[api.Flow]{
	Name: func(f api.Flow) string { return cmp.Or(f.Client.Name, f.Client.Cluster+"/"+f.Client.Node) },
	Columns: []Column[api.Flow]{
		{Name: "CLIENT", Cell: text(func(f api.Flow) string {
			name := api.Short(f.Client.Name, nameWidth)
			if f.Client.Program != "" {
				name += " (" + f.Client.Program + ")"
			}
			return name
		})},
		{Name: "ON", Cell: text(func(f api.Flow) string { return f.Client.Cluster + "/" + f.Client.Node })},
		{Name: "SERVICE", Cell: text(func(f api.Flow) string {
			if f.Service != "" && f.Port != "" {
				return f.Service + ":" + f.Port
			}
			return f.Of()
		})},
		{Name: "BACKEND", Cell: text(func(f api.Flow) string { return cmp.Or(f.Backend.Pod, f.Backend.Addr.String()) })},
		{Name: "WHERE", Cell: text(func(f api.Flow) string { return f.Backend.Where() })},
		{Name: "OPEN", Moving: true, Cell: number(func(f api.Flow) int { return f.Open })},
		{Name: "SENT", Moving: true, Cell: text(func(f api.Flow) string { return size(f.Sent) })},
		{Name: "RECEIVED", Moving: true, Cell: text(func(f api.Flow) string { return size(f.Received) })},
		{Name: "RTT", Moving: true, Cell: text(func(f api.Flow) string {
			if f.RTT > 0 && f.RTT < 0.1 {
				return "<0.1 ms"
			}
			return milliseconds(f.RTT)
		})},
		{Name: "TIER", Wide: true, Cell: text(func(f api.Flow) string { return f.Backend.Tier })},
		{Name: "FRONTEND", Wide: true, Cell: text(func(f api.Flow) string { return f.Frontend.String() })},
		{Name: "ADDRESS", Wide: true, Cell: text(func(f api.Flow) string { return f.Backend.Addr.String() })},
	},
}

// Top shows services, clusters or nodes by what goes on now.
func Top(by string) Table[api.TopRow] {
	t := Table[api.TopRow]{
		Name: func(r api.TopRow) string { return r.Name },
		Columns: []Column[api.TopRow]{
			{Name: strings.ToUpper(strings.TrimSuffix(by, "s")), Cell: text(func(r api.TopRow) string { return api.Short(r.Name, 2*nameWidth) })},
			{Name: "OPEN", Moving: true, Cell: number(func(r api.TopRow) int { return r.Open })},
			{Name: "NEW/S", Moving: true, Cell: text(func(r api.TopRow) string { return perSecond(r.New) })},
		},
	}
	if by != "clusters" { // a connection that is refused goes to no cluster
		t.Columns = append(t.Columns, Column[api.TopRow]{Name: "REFUSED/S", Moving: true, Cell: text(func(r api.TopRow) string { return perSecond(r.Refused) })})
	}
	t.Columns = append(t.Columns,
		Column[api.TopRow]{Name: "SENT", Moving: true, Cell: text(func(r api.TopRow) string { return size(r.Sent) })},
		Column[api.TopRow]{Name: "RECEIVED", Moving: true, Cell: text(func(r api.TopRow) string { return size(r.Received) })})
	if by != "clusters" {
		t.Columns = append(t.Columns, Column[api.TopRow]{Name: "TO", Moving: true, Cell: text(func(r api.TopRow) string {
			return join(r.To, " · ", func(s api.TopShare) string { return cmp.Or(s.Cluster, "elsewhere") + " " + api.Percent(s.Share) })
		})})
	}
	return t
}

// size formats a number of bytes, or None if it is unknown.
func size(n *uint64) string {
	if n == nil {
		return api.None
	}
	return api.Bytes(int64(min(*n, 1<<62)))
}

func perSecond(n *float64) string {
	switch {
	case n == nil:
		return api.None
	case *n == 0:
		return "0"
	case *n < 0.1:
		return "<0.1"
	case *n < 10:
		return fmt.Sprintf("%.1f", *n)
	}
	return fmt.Sprintf("%.0f", *n)
}
