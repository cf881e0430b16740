package connectivity

import (
	"fmt"
	"net/netip"
	"slices"

	"strait.io/strait/daemon/api"
)

// State is the outcome of a case.
type State string

// Outcomes. Unknown means that the client could not be asked.
const (
	OK      State = "ok"
	Failed  State = "failed"
	Unknown State = "unknown"
)

// Result is what became of a case.
type Result struct {
	Case
	State State `json:"state"`
	Stage Stage `json:"stage,omitempty"`
	// Error is empty if the case is fine.
	Error string `json:"error,omitempty"`
	// Note is what is unusual about a case that is fine.
	Note   string  `json:"note,omitempty"`
	Tries  int     `json:"tries,omitempty"`
	Millis float64 `json:"millis,omitempty"`
}

// Judge decides what the outcome of a case means. An error means that the client could not be asked.
func Judge(c Case, o Outcome, asked error) Result {
	r := Result{Case: c, State: Failed, Stage: o.Stage, Error: o.Error, Tries: o.Tries, Millis: o.Millis}
	switch {
	case c.Missing != "":
		r.Error = c.Missing
	case asked != nil:
		r.State, r.Error = Unknown, asked.Error()
	case o.Stage != Done:
	case o.Server.Cluster != c.To:
		r.Error = fmt.Sprintf("%s of cluster %s answered", o.Server.Pod, o.Server.Cluster)
	case c.Server != (Identity{}) && c.Server != o.Server:
		r.Error = fmt.Sprintf("pod %s on %s/%s answered, not %s", o.Server.Pod, o.Server.Cluster, o.Server.Node, c.Server.Pod)
	default:
		r.State, r.Note = OK, seenNote(c, o.Seen)
	}
	return r
}

// seenNote says so if a pod is seen in another cluster by another address than its own. Inside a
// cluster, its network plugin decides that.
func seenNote(c Case, seen netip.Addr) string {
	if c.Client.Host || c.Client.Cluster == c.To || !seen.IsValid() || slices.Contains(c.Client.Addresses, seen) {
		return ""
	}
	return fmt.Sprintf("the server sees the client as %s, which is not the pod's own address", seen)
}

// Skip is a part of the test that was left out, and why.
type Skip struct {
	Cluster string `json:"cluster"`
	What    string `json:"what"`
	Why     string `json:"why"`
}

// Report is all that a test found.
type Report struct {
	api.Meta
	Clusters []string `json:"clusters"`
	Results  []Result `json:"results"`
	Causes   []Cause  `json:"causes,omitempty"`
	Skipped  []Skip   `json:"skipped,omitempty"`
	Pairs    []Pair   `json:"performance,omitempty"`
}

// Count counts the results with a state.
func (r Report) Count(state State) (n int) {
	for _, x := range r.Results {
		if x.State == state {
			n++
		}
	}
	return n
}

// Row is one client in the matrix, with a cell for each cluster.
type Row struct {
	From, Kind string
	Cells      []Cell
}

// Cell counts the cases of a client and a cluster.
type Cell struct{ Fine, Unknown, All int }

// Matrix has a row for each client, in the order of the results.
func (r Report) Matrix() (out []Row) {
	for _, x := range r.Results {
		i := slices.IndexFunc(out, func(row Row) bool { return row.From == x.From && row.Kind == x.Kind })
		if i < 0 {
			i = len(out)
			out = append(out, Row{x.From, x.Kind, make([]Cell, len(r.Clusters))})
		}
		to := slices.Index(r.Clusters, x.To)
		if to < 0 {
			continue
		}
		cell := &out[i].Cells[to]
		cell.All++
		switch x.State {
		case OK:
			cell.Fine++
		case Unknown:
			cell.Unknown++
		}
	}
	return out
}
