package mcs

import (
	"fmt"
	"slices"
	"strconv"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	mcsv1beta1 "sigs.k8s.io/mcs-api/pkg/apis/v1beta1"

	"strait.io/strait/clustermesh"
	"strait.io/strait/clustermesh/written"
	"strait.io/strait/internal/problem"
)

// exportStatuses writes the conditions of the cluster's own exports. It writes nothing if the
// source has not judged a ServiceExport: there may be no verdict yet, or one on an alias instead.
func (d *differ) exportStatuses() {
	e, known := d.view.export(d.name)
	if !known {
		return
	}
	if e.Alias == "" {
		d.exportStatus(d.have.Export, e, d.have.API.Exports, "")
		e.Omitted = "" // an export of the old group has no labels to export
	}
	if served, is := d.have.API.Foreign[written.OldExport]; is {
		d.exportStatus(d.have.OldExport, e, served, OldGroup)
	}
}

// exportStatus writes the conditions of one export if they differ.
func (d *differ) exportStatus(have *mcsv1beta1.ServiceExport, e clustermesh.ExportStatus, served Served, group string) {
	if have == nil || served.NoStatus {
		return // strait has no right to write more of a user's export than its status
	}
	all := d.exportConditions(e)
	if ConflictOfOthers(have.ManagedFields) && !slices.ContainsFunc(all, func(c metav1.Condition) bool { return c.Type == conflict }) {
		// An apply would not remove it.
		all = append(all, metav1.Condition{Type: conflict, Status: metav1.ConditionFalse,
			Reason: string(mcsv1beta1.ServiceExportReasonNoConflicts), Message: "Not exported, so nothing disagrees."})
	}
	want, restated := d.stated(have.Status.Conditions, have.Generation, all)
	want = prune(served, &mcsv1beta1.ServiceExport{Status: mcsv1beta1.ServiceExportStatus{Conditions: want}}).Status.Conditions
	if sameConditions(have.Status.Conditions, want) {
		return
	}
	export := &mcsv1beta1.ServiceExport{ObjectMeta: meta(have)}
	op := written.Op{Verb: written.ApplyStatus, Kind: inGroup(written.ServiceExport, group), Force: true, Object: export, Restates: restated}
	export.Status.Conditions = want
	for _, c := range want {
		if turned(have.Status.Conditions, c) {
			op.Events = append(op.Events, exportEvents(have.Status.Conditions, c)...)
		}
	}
	d.do(op)
}

// The types of a ServiceExport's conditions.
const (
	valid    = string(mcsv1beta1.ServiceExportConditionValid)
	conflict = string(mcsv1beta1.ServiceExportConditionConflict)
)

// exportConditions returns Valid, Ready and, for an announced export, Conflict and LocalBackends.
func (d *differ) exportConditions(e clustermesh.ExportStatus) []metav1.Condition {
	judged := metav1.Condition{Type: valid, Status: metav1.ConditionFalse, Reason: e.Reason, Message: e.Message}
	if e.Valid {
		judged.Status, judged.Reason = metav1.ConditionTrue, string(mcsv1beta1.ServiceExportReasonValid)
		judged.Message = "The Service can be exported."
	}
	ready := metav1.Condition{
		Type: string(mcsv1beta1.ServiceExportConditionReady), Status: metav1.ConditionFalse,
		Reason: string(mcsv1beta1.ServiceExportReasonFailed), Message: "Not exported: " + e.Message,
	}
	_, known := d.view.source(d.name)
	switch {
	case !e.Exported:
		return []metav1.Condition{judged, ready}
	case !known || !slices.Contains(d.imp.Exporters, d.view.Cluster):
		ready.Reason, ready.Message = pending, "Not announced to the clusterset yet."
		return []metav1.Condition{judged, ready}
	}
	ready.Status, ready.Reason = metav1.ConditionTrue, string(mcsv1beta1.ServiceExportReasonExported)
	ready.Message = announced(e)
	out := []metav1.Condition{judged, ready, conflictCondition(d.imp.Import)}
	if d.imp.Local != nil {
		out = append(out, localBackends(d.name, *d.imp.Local))
	}
	return out
}

// announced describes to the owner of an export what of it the clusterset knows and serves.
func announced(e clustermesh.ExportStatus) string {
	out := "Announced to the clusterset"
	if e.Omitted != "" {
		out += ", except what is not valid: " + e.Omitted
	}
	out += "."
	if e.NotBalanced != "" {
		out += " Only the pods' own addresses answer on " + e.NotBalanced + ", since strait balances TCP and UDP."
	}
	return shorten(out, maxMessage)
}

// EventProblems returns the Problems of a service that become Events: those of objects that have no
// conditions, or whose conditions have no room for them. Exports of other API groups are among
// these objects, unless the API server has conditions for them.
func (v View) EventProblems(s clustermesh.ServiceName, api API) []clustermesh.Problem {
	out := v.Problems[s]
	e, _ := v.export(s)
	if served, is := api.Foreign[e.Alias]; is && !served.NoStatus {
		about := problem.Object(e.Alias, s.Namespace, s.Name)
		return slices.DeleteFunc(slices.Clone(out), func(p clustermesh.Problem) bool {
			return p.Code == problem.ExportImpossible && p.Ref == about
		})
	}
	i, known := v.source(s)
	if e.Alias == "" || !e.Exported || !known {
		return out
	}
	if c := conflictCondition(i.Make().Import); c.Status == metav1.ConditionTrue {
		out = append(slices.Clone(out), problem.Object(e.Alias, s.Namespace, s.Name).Problem(clustermesh.Problem{
			Code:    problem.ExportConflict,
			Message: c.Reason + ": " + c.Message,
			Try:     "make the Services agree in every exporting cluster", Warning: true,
		}))
	}
	return out
}

// conflictCondition returns the condition Conflict. It is true on every export of a service whose
// exports disagree.
func conflictCondition(i clustermesh.Import) metav1.Condition {
	c := metav1.Condition{
		Type: conflict, Status: metav1.ConditionFalse,
		Reason: string(mcsv1beta1.ServiceExportReasonNoConflicts), Message: "All exporting clusters agree.",
	}
	if len(i.Conflicts) == 0 {
		return c
	}
	var reasons, messages []string
	for _, k := range i.Conflicts {
		if !slices.Contains(reasons, k.Reason) {
			reasons = append(reasons, k.Reason)
		}
		messages = append(messages, conflictMessage(i, k))
	}
	c.Status, c.Reason = metav1.ConditionTrue, strings.Join(reasons, ",")
	c.Message = shorten(strings.Join(messages, " "), maxMessage)
	return c
}

// maxMessage keeps messages well below the API's limit, 32768.
const maxMessage = 4096

func shorten(s string, limit int) string {
	if len(s) <= limit {
		return s
	}
	return strings.ToValidUTF8(s[:limit-len(" …")], "") + " …"
}

func conflictMessage(i clustermesh.Import, k clustermesh.Conflict) string {
	who := fmt.Sprintf("%d/%d clusters disagree (%s).", len(k.Losers), k.Total, listed(k.Losers))
	if k.Field == "ports" { // a union: no cluster lost a port
		return fmt.Sprintf("Conflicting ports. Using all ports of all service exports, not only those of the oldest in %q. %s", k.Winner, who)
	}
	what, value := conflictValue(i, k)
	if value = strconv.Quote(value); value == `""` {
		value = "those" // labels, annotations, ports
	}
	return fmt.Sprintf("Conflicting %s. Using %s from oldest service export in %q. %s", what, value, k.Winner, who)
}

// maxListed is how many clusters a message names before it ends in "…".
const maxListed = 5

func listed(cs []clustermesh.ClusterName) string {
	var out []string
	for n, c := range cs {
		if n == maxListed {
			out = append(out, "…")
			break
		}
		out = append(out, string(c))
	}
	return strings.Join(out, ", ")
}

// conflictValue returns the property in words and, if it is short, the value that is in force.
func conflictValue(i clustermesh.Import, k clustermesh.Conflict) (what, value string) {
	switch mcsv1beta1.ServiceExportConditionReason(k.Reason) {
	case mcsv1beta1.ServiceExportReasonTypeConflict:
		return "type", string(i.Type)
	case mcsv1beta1.ServiceExportReasonSessionAffinityConflict:
		affinity, _ := affinity(i.AffinitySeconds)
		return "session affinity", string(affinity)
	case mcsv1beta1.ServiceExportReasonSessionAffinityConfigConflict:
		return "session affinity config", fmt.Sprintf("timeoutSeconds: %d", i.AffinitySeconds)
	case mcsv1beta1.ServiceExportReasonInternalTrafficPolicyConflict:
		return "internal traffic policy", i.InternalTrafficPolicy
	case mcsv1beta1.ServiceExportReasonTrafficDistributionConflict:
		return "traffic distribution", i.TrafficDistribution
	case mcsv1beta1.ServiceExportReasonIPFamilyConflict:
		return "IP families", familyNames(i.Families)
	case mcsv1beta1.ServiceExportReasonLabelsConflict:
		return "exported labels", ""
	case mcsv1beta1.ServiceExportReasonAnnotationsConflict:
		return "exported annotations", ""
	}
	return k.Field, ""
}

// exportEvents returns Events for what went wrong and for what recovered. It returns none for a
// Valid or Conflict condition that was fine from the start, nor for a pending export.
func exportEvents(have []metav1.Condition, c metav1.Condition) []written.Event {
	was := slices.ContainsFunc(have, func(h metav1.Condition) bool { return h.Type == c.Type })
	e := written.Event{Reason: c.Reason, Message: c.Message, Change: changeOf(have, c), Service: c.Type == conflict}
	switch {
	case owners(c):
		return newsEvents(have, c)
	case c.Type == valid, c.Type == conflict:
		if e.Warning = (c.Status == metav1.ConditionTrue) == (c.Type == conflict); !e.Warning && !was {
			return nil
		}
	case c.Status == metav1.ConditionFalse && c.Reason == pending:
		return nil
	default:
		e.Warning = c.Status == metav1.ConditionFalse
	}
	// An Event's reason is one word.
	e.Reason, _, _ = strings.Cut(e.Reason, ",")
	return []written.Event{e}
}
