package table

import (
	"fmt"
	"time"

	"strait.io/strait/daemon/api"
)

// Clusters is the table of strait status.
var Clusters = Table[api.Cluster]{
	Name: func(c api.Cluster) string { return c.Name },
	Columns: []Column[api.Cluster]{
		{Name: "CLUSTER", Cell: text(func(c api.Cluster) string { return c.Name })},
		{Name: "STATE", Cell: text(clusterState)},
		{Name: "NODES", Cell: text(func(c api.Cluster) string { return fmt.Sprintf("%d/%d", c.Alive, c.Nodes) })},
		{Name: "DEAD", Cell: text(func(c api.Cluster) string {
			if c.Dead == 0 {
				return ""
			}
			return fmt.Sprintf("%s %d", api.Bad, c.Dead)
		})},
		{Name: "EXPORTS", Cell: number(func(c api.Cluster) int { return c.Exports })},
		{Name: "ENDPOINTS", Cell: text(clusterEndpoints)},
		{Name: "HEARD", Moving: true, Cell: func(c api.Cluster, now time.Time) string {
			if c.State == api.Here {
				return api.None
			}
			return since(now, c.Heard)
		}},
		{Name: "TUNNELS", Wide: true, Cell: text(func(c api.Cluster) string {
			if c.Tunnels == nil {
				return ""
			}
			return sorted(c.Tunnels.States)
		})},
		{Name: "RTT", Wide: true, Moving: true, Cell: text(func(c api.Cluster) string {
			if c.Tunnels == nil {
				return ""
			}
			return milliseconds(c.Tunnels.RTT)
		})},
	},
}

func clusterState(c api.Cluster) string {
	state := api.Warn + " " + string(c.State)
	switch c.State {
	case api.Here:
		state = api.OK + " here"
	case api.Joined:
		state = api.OK + " joined"
	case api.Quiet:
		state = api.Warn + " not heard, machines answer"
	}
	if c.Drained > 0 {
		state += ", drained " + api.Percent(c.Drained)
	}
	if c.Open != nil {
		state += fmt.Sprintf(", %d open", *c.Open)
	}
	return state
}

// clusterEndpoints counts the endpoints, by family if there are both.
func clusterEndpoints(c api.Cluster) string {
	if six := c.EndpointsIPv6; six > 0 && six < c.Endpoints {
		return fmt.Sprintf("%d IPv4 · %d IPv6", c.Endpoints-six, six)
	}
	return fmt.Sprint(c.Endpoints)
}

// milliseconds formats a round-trip time; empty if it is unknown.
func milliseconds(rtt float64) string {
	if rtt == 0 {
		return ""
	}
	return fmt.Sprintf("%.1f ms", rtt)
}
