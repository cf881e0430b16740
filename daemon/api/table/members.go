package table

import (
	"fmt"
	"strings"
	"time"

	"strait.io/strait/daemon/api"
)

// Members shows clusters, and below each its nodes.
var Members = Table[api.Member]{
	Name: api.Member.Name,
	Columns: []Column[api.Member]{
		{Name: "MEMBER", Cell: text(func(m api.Member) string {
			if m.Node != "" {
				return api.Short("  "+m.Node, nameWidth)
			}
			return api.Short(m.Cluster, nameWidth)
		})},
		{Name: "STATE", Cell: text(memberState)},
		{Name: "HEARD", Moving: true, Cell: func(m api.Member, now time.Time) string { return since(now, m.Heard) }},
		{Name: "LINK", Cell: text(func(m api.Member) string {
			switch {
			case m.Relay && m.Link != "":
				return m.Link + ", relay"
			case m.Relay:
				return "relay"
			}
			return m.Link
		})},
		{Name: "DISTANCE", Moving: true, Cell: text(distance)},
		{Name: "PINNED", Cell: text(func(m api.Member) string { return yes(m.Node == "" && m.Pinned) })},
		{Name: "KEY", Cell: text(func(m api.Member) string { return strings.Join(m.Keys, " ") })},
		{Name: "STATEMENT ENDS", Moving: true, Cell: func(m api.Member, now time.Time) string {
			switch left := m.Ends.Sub(now); {
			case m.Ends.IsZero():
				return api.None
			case left <= 0:
				return api.Warn + " ended " + api.Age(-left) + " ago"
			default:
				return "in " + api.Age(left)
			}
		}},
		{Name: "HAS ROOT", Cell: text(func(m api.Member) string { return yes(m.HasRoot) })},
		{Name: "ACCEPTED NAMESPACES", Cell: text(func(m api.Member) string { return strings.Join(m.Accepts, " ") })},
		{Name: "RECORD", Wide: true, Moving: true, Cell: func(m api.Member, now time.Time) string { return since(now, m.Received) }},
		{Name: "FROM", Wide: true, Cell: text(func(m api.Member) string { return m.From })},
		{Name: "SIGNED BY", Wide: true, Cell: text(func(m api.Member) string { return m.Root })},
		{Name: "GOSSIP KEYS", Wide: true, Cell: text(func(m api.Member) string { return strings.Join(m.GossipKeys, " ") })},
	},
}

func yes(is bool) string {
	if is {
		return "yes"
	}
	return ""
}

func memberState(m api.Member) string {
	switch m.State {
	case api.NotPinned:
		return api.Bad + " " + m.State
	case string(api.Here), string(api.Joined), api.Self, api.Alive, api.Reported:
		return api.OK + " " + m.State
	}
	return api.Warn + " " + m.State
}

func distance(m api.Member) string {
	switch {
	case m.Distance < 0:
		return api.Warn + " no ping"
	case m.Distance > 0:
		return fmt.Sprintf("> %d ms", m.Distance)
	}
	return milliseconds(m.RTT)
}

// Policies shows what this cluster does by each policy.
var Policies = Table[api.Policy]{
	Name: func(p api.Policy) string { return p.Name },
	Columns: []Column[api.Policy]{
		{Name: "POLICY", Cell: text(func(p api.Policy) string { return p.Name })},
		{Name: "AS", Cell: text(func(p api.Policy) string { return p.As })},
		{Name: "FROM", Cell: text(func(p api.Policy) string { return all(p.From) })},
		{Name: "TO", Cell: text(func(p api.Policy) string { return all(p.To) })},
		{Name: "SELECTED", Cell: number(func(p api.Policy) int { return p.Selected })},
		{Name: "SHARED", Cell: number(func(p api.Policy) int { return p.Shared })},
		{Name: "FROM OTHERS", Cell: number(func(p api.Policy) int { return len(p.Others) })},
		{Name: "MADE", Cell: number(api.Policy.Made)},
		{Name: "SKIPPED", Cell: number(func(p api.Policy) int { return len(p.Skipped) + p.SkippedMore })},
		{Name: "MIRRORED", Wide: true, Cell: number(func(p api.Policy) int { return p.Mirrored })},
		{Name: "IMPORTED", Wide: true, Cell: number(func(p api.Policy) int { return p.Imported })},
		{Name: "JOINED", Wide: true, Cell: number(func(p api.Policy) int { return p.Joined })},
		{Name: "FIRST REASON", Wide: true, Cell: text(func(p api.Policy) string {
			if len(p.Skipped) == 0 {
				return ""
			}
			return p.Skipped[0].Reason
		})},
	},
}

// all lists clusters; none means all of them.
func all(clusters []string) string {
	if len(clusters) == 0 {
		return "all"
	}
	return strings.Join(clusters, ",")
}
