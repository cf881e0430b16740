package clustermesh

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"strait.io/strait/internal/problem"
)

// Reasons of conflicts: the MCS API's reasons for the Conflict condition.
const (
	reasonPort           = "PortConflict"
	reasonType           = "TypeConflict"
	reasonAffinity       = "SessionAffinityConflict"
	reasonAffinityConfig = "SessionAffinityConfigConflict"
	reasonLabels         = "LabelsConflict"
	reasonAnnotations    = "AnnotationsConflict"
	reasonPolicy         = "InternalTrafficPolicyConflict"
	reasonDistribution   = "TrafficDistributionConflict"
	reasonFamily         = "IPFamilyConflict"
)

// fieldPorts is the Field of a Conflict about the whole set of ports.
const fieldPorts = "ports"

// Conflict is one property of a service in which its exports disagree (KEP-1645 "conflict
// resolution").
type Conflict struct {
	// Reason is the MCS API's reason for the Conflict condition, such as "PortConflict".
	Reason string `json:"reason"`
	// Field is the property, such as "type" or "sessionAffinity". It is "ports[http:81/TCP]" for a
	// port whose name or number an older export uses differently, and "ports" if only the sets of
	// ports differ.
	Field string `json:"field"`
	// Winner is the cluster of the oldest export that defines the property; its value is in force.
	// Losers are the clusters that disagree with it.
	Winner ClusterName   `json:"winner"`
	Losers []ClusterName `json:"losers"`
	// Total is the number of exporting clusters.
	Total int `json:"total"`
}

// conflicts collects the conflicts of one service.
type conflicts struct {
	total int
	list  []Conflict
}

func (c *conflicts) add(reason, field string, winner, loser ClusterName) {
	i := slices.IndexFunc(c.list, func(x Conflict) bool { return x.Reason == reason && x.Field == field && x.Winner == winner })
	if i < 0 {
		i = len(c.list)
		c.list = append(c.list, Conflict{Reason: reason, Field: field, Winner: winner, Total: c.total})
	}
	if x := &c.list[i]; !slices.Contains(x.Losers, loser) {
		x.Losers = append(x.Losers, loser)
	}
}

// falselyOldest reports the exports that claim to be older than the oldest, which is the first.
func falselyOldest(exports []ClusterExport) (out []Problem) {
	for _, e := range exports[1:] {
		if e.Created >= exports[0].Created {
			continue
		}
		ref := e.Service.Ref("ServiceExport")
		ref.Cluster = string(e.Cluster)
		out = append(out, ref.Problem(Problem{
			Code:  problem.ExportLate,
			Field: "metadata.creationTimestamp",
			Message: fmt.Sprintf("it claims to be from %s, but the clusterset has had no such export of this type before about %s: in conflicts it counts from then on, so the export of %s is the oldest",
				utc(e.Created), utc(e.since()), exports[0].Cluster),
			Try:     fmt.Sprintf("nothing, if cluster %s joined then, or if its Service came back or got another type; otherwise find out who changed the date", e.Cluster),
			Warning: true,
		}))
	}
	return out
}

func utc(unix int64) string { return time.Unix(unix, 0).UTC().Format(time.DateTime) }

// problem names the clusters that disagree, and what is in force.
func (c Conflict) problem(s ServiceName) Problem {
	who := make([]string, len(c.Losers))
	for i, l := range c.Losers {
		who[i] = string(l)
	}
	force := fmt.Sprintf("the oldest export, from %s, is in force", c.Winner)
	switch {
	case c.Field == fieldPorts:
		force = fmt.Sprintf("their ports differ from those of %s; the import has all ports, and each port reaches only the clusters that have it", c.Winner)
	case c.Reason == reasonFamily:
		force = fmt.Sprintf("the families of the oldest export, from %s, are in force, and these clusters do not have all of them", c.Winner)
	}
	return s.Ref("ServiceExport").Problem(Problem{
		Code:    problem.ExportConflict,
		Field:   c.Field,
		Message: fmt.Sprintf("%d/%d clusters disagree (%s); %s", len(c.Losers), c.Total, strings.Join(who, ", "), force),
		Try:     "make the Services agree in every exporting cluster",
		Warning: true,
	})
}
