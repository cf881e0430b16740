package table

import (
	"fmt"
	"strings"
	"time"

	"strait.io/strait/daemon/api"
)

// Backends shows where connections to each frontend go.
var Backends = Table[api.Backend]{
	Name: func(b api.Backend) string { return b.Addr.String() },
	Columns: []Column[api.Backend]{
		{Name: "SERVICE", Cell: text(func(b api.Backend) string { return b.Service })},
		{Name: "FRONTEND", Cell: text(func(b api.Backend) string { return b.Frontend.String() })},
		{Name: "PORT", Cell: text(func(b api.Backend) string { return b.Port })},
		{Name: "BACKEND", Cell: text(func(b api.Backend) string { return b.Addr.String() })},
		{Name: "WHERE", Cell: text(func(b api.Backend) string { return b.Where() })},
		{Name: "POD", Cell: text(func(b api.Backend) string { return b.Pod })},
		{Name: "TIER", Cell: text(func(b api.Backend) string { return b.Tier })},
		{Name: "SHARE", Cell: text(func(b api.Backend) string { return api.Percent(b.Share) })},
		{Name: "WEIGHT", Cell: number(func(b api.Backend) uint32 { return b.Weight })},
		{Name: "ZONE", Wide: true, Cell: text(func(b api.Backend) string { return b.Zone })},
		{Name: "RTT", Wide: true, Moving: true, Cell: text(func(b api.Backend) string { return b.Away() })},
		{Name: "CONNECTS", Wide: true, Moving: true, Cell: number(func(b api.Backend) uint64 { return b.Connects })},
	},
}

// Candidate is an endpoint that was considered for a frontend. Only the first of a tier has its
// name and how many of it are ready.
type Candidate struct {
	api.Endpoint
	Tier, Ready string
	// OtherFamily is true if it can never be behind the frontend.
	OtherFamily bool
}

// Candidates lists the endpoints that were considered for a frontend, from near to far.
func Candidates(f api.Frontend) (out []Candidate) {
	for _, t := range f.Tiers() {
		tier, ready := orNone(t.Name), fmt.Sprintf("%d/%d", t.Ready, t.Total)
		for _, e := range t.Endpoints {
			out = append(out, Candidate{e, tier, ready, !f.SameFamily(e)})
			tier, ready = "", ""
		}
	}
	return out
}

// Explained shows why each endpoint is in use or not.
var Explained = Table[Candidate]{
	Name: func(c Candidate) string { return c.Addr.String() },
	Columns: []Column[Candidate]{
		{Name: "TIER", Cell: func(c Candidate, _ time.Time) string { return c.Tier }},
		{Name: "READY", Cell: func(c Candidate, _ time.Time) string { return c.Ready }},
		{Name: "SHARE", Cell: text(func(c Candidate) string { return api.Percent(c.Share) })},
		{Name: "ENDPOINT", Cell: text(func(c Candidate) string { return c.Addr.String() })},
		{Name: "WHERE", Cell: text(func(c Candidate) string { return c.Where() })},
		{Name: "RTT", Moving: true, Cell: text(func(c Candidate) string { return c.Away() })},
		{Name: "POD", Cell: text(func(c Candidate) string { return c.Pod })},
		{Name: "REASON", Cell: text(func(c Candidate) string {
			switch {
			case c.OtherFamily: // nothing is wrong with it
			case !c.Endpoint.Ready && c.Share > 0: // terminating, as the last resort
				return api.Warn + " " + c.Reason
			case !c.Endpoint.Ready:
				return api.Bad + " " + c.Reason
			}
			return c.Reason
		})},
	},
}

// Moved shows the frontends whose connections a change would move.
var Moved = Table[api.Moved]{
	Name: func(m api.Moved) string { return m.Service },
	Columns: []Column[api.Moved]{
		{Name: "SERVICE", Cell: text(func(m api.Moved) string { return m.Service })},
		{Name: "FRONTEND", Cell: text(func(m api.Moved) string { return m.Addr.String() })},
		{Name: "NOW", Cell: text(func(m api.Moved) string { return m.Before })},
		{Name: "THEN", Cell: text(func(m api.Moved) string { return m.After })},
		{Name: "OVERLOADED", Cell: text(overloaded)},
	},
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
		return ""
	}
	return api.Warn + " " + api.Count(n, "endpoint")
}

// MovedEndpoints shows the endpoints of such a frontend.
var MovedEndpoints = Table[api.MovedEndpoint]{
	Name: func(e api.MovedEndpoint) string { return e.Addr.String() },
	Columns: []Column[api.MovedEndpoint]{
		{Name: "ENDPOINT", Cell: text(func(e api.MovedEndpoint) string { return e.Addr.String() })},
		{Name: "WHERE", Cell: func(e api.MovedEndpoint, _ time.Time) string { return strings.Trim(e.Cluster+"/"+e.Node, "/") }},
		{Name: "NOW", Cell: text(func(e api.MovedEndpoint) string { return api.Percent(e.Before) })},
		{Name: "THEN", Cell: text(func(e api.MovedEndpoint) string { return api.Percent(e.After) })},
		{Name: "REASON", Cell: func(e api.MovedEndpoint, _ time.Time) string {
			if e.Overloaded {
				return api.Warn + " more than it can bear; " + e.Reason
			}
			return e.Reason
		}},
	},
}
