package object

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/validation"
	mcsv1beta1 "sigs.k8s.io/mcs-api/pkg/apis/v1beta1"

	"strait.io/strait/clustermesh"
	"strait.io/strait/internal/problem"
)

// wish asks for a Service to be exported: it is a ServiceExport or an alias of one.
type wish struct {
	kind    string
	service clustermesh.ServiceName
	created int64 // in Unix seconds, 0 for none
	export  *Export
	alias   bool
}

// wishes returns one wish per service, sorted by service. A ServiceExport is chosen before an
// alias, then the older object.
func wishes(objs Objects) []wish {
	all := make([]wish, 0, len(objs.Exports)+len(objs.Aliases))
	for _, e := range objs.Exports {
		all = append(all, wish{"ServiceExport", e.service(), e.created, e, false})
	}
	for _, a := range objs.Aliases {
		all = append(all, wish{a.kind, a.service(), a.created, &Export{}, true})
	}
	slices.SortStableFunc(all, func(a, b wish) int {
		return cmp.Or(a.service.Compare(b.service), compareBool(a.alias, b.alias), cmp.Compare(a.created, b.created), cmp.Compare(a.kind, b.kind))
	})
	return slices.CompactFunc(all, func(a, b wish) bool { return a.service == b.service })
}

func compareBool(a, b bool) int {
	switch {
	case a == b:
		return 0
	case b:
		return -1
	}
	return 1
}

// readExports returns the exports sorted by service: one per wish whose Service can be exported,
// and those of policies and MultiClusterServices. It also returns a verdict per wish.
func (l *reader) readExports(objs Objects) (out []clustermesh.Export, status []clustermesh.ExportStatus) {
	all := wishes(objs)
	out, status = make([]clustermesh.Export, 0, len(all)), make([]clustermesh.ExportStatus, 0, len(all))
	for _, w := range all {
		e, s := l.readExport(w)
		if s.Exported {
			out = append(out, e)
		}
		if w.alias {
			s.Alias = w.kind
		}
		status = append(status, s)
	}
	wished := make(map[clustermesh.ServiceName]bool, len(all))
	for _, w := range all {
		wished[w.service] = true
	}
	if more := slices.Concat(l.exportsByPolicy(wished), l.exportsByMulti(wished)); len(more) > 0 {
		out = append(out, more...)
		slices.SortFunc(out, func(a, b clustermesh.Export) int { return a.Service.Compare(b.Service) })
	}
	return orNil(out), orNil(status)
}

func (l *reader) readExport(w wish) (clustermesh.Export, clustermesh.ExportStatus) {
	o := l.report.on(w.kind, w.service.Namespace, w.service.Name)
	service := l.service(w.service)
	status := validity(w, service)
	fail := func(format string, args ...any) {
		if status.Valid {
			status.Reason, status.Message = string(mcsv1beta1.ServiceExportReasonFailed), fmt.Sprintf(format, args...)
		}
	}
	for _, part := range []struct{ field, text string }{
		{"metadata.namespace", w.service.Namespace}, {"metadata.name", w.service.Name},
	} {
		// Both become labels of a DNS name.
		if msgs := validation.IsDNS1123Label(part.text); len(msgs) > 0 {
			o.problem(problem.ValueInvalid, part.field, fmt.Sprintf("%q cannot be part of a DNS name: not exported", part.text), msgs[0])
			fail("%s %q cannot be part of a DNS name", part.field, part.text)
			return clustermesh.Export{}, status
		}
	}
	if why := l.stays(w.service); why != "" {
		o.warning(problem.NamespaceBarred, "metadata", why+": not exported", "delete the ServiceExport, or export a Service of another namespace")
		fail("%s", why)
		return clustermesh.Export{}, status
	}
	switch status.Reason {
	case string(mcsv1beta1.ServiceExportReasonNoService):
		if l.report.missing("Service", w.service.Namespace, w.service.Name) {
			o.warning(problem.ExportWithoutService, "", "there is no Service of this name: nothing is exported",
				fmt.Sprintf("create Service %s, or delete the ServiceExport", w.service))
		}
		return clustermesh.Export{}, status
	case string(mcsv1beta1.ServiceExportReasonInvalidServiceType):
		l.report.on("Service", w.service.Namespace, w.service.Name).problem(problem.ExportImpossible, "spec.type", status.Message,
			"use another type, or delete the ServiceExport")
		l.tellAlias(w, o, status)
		return clustermesh.Export{}, status
	}
	e, ok := readService(service, l.report.on("Service", w.service.Namespace, w.service.Name))
	if !ok {
		fail("no port of Service %s can be used", w.service)
		l.tellAlias(w, o, status)
		return clustermesh.Export{}, status
	}
	e.Service, e.Created = w.service, w.created
	labels, annotations := exportedLabels(w.export.labels, o), exportedAnnotations(w.export.annotations, o)
	e.Labels, e.Annotations = labels.kept, annotations.kept
	status.Omitted = strings.Join(slices.Concat(labels.omitted, annotations.omitted), ", ")
	status.NotBalanced = notBalanced(e)
	e.Routing = readRouting(noted{
		{service.annotations, l.report.on("Service", w.service.Namespace, w.service.Name)}, {w.export.own, o},
	})
	status.Exported = true
	return e, status
}

// notBalanced lists the ports that the export's ClusterSetIP does not serve, if it gets one.
func notBalanced(e clustermesh.Export) string {
	var out []string
	for _, p := range e.Ports {
		if e.Type == clustermesh.ClusterSetIP && !p.Proto.Balanced() {
			out = append(out, p.String())
		}
	}
	return strings.Join(out, ", ")
}

// tellAlias reports a verdict as a Problem if the wish is an alias, because its kind may have no
// conditions that strait writes.
func (l *reader) tellAlias(w wish, o *objectReport, s clustermesh.ExportStatus) {
	if w.alias {
		o.problem(problem.ExportImpossible, "", s.Message+": nothing is exported", "change the Service, or delete the "+w.kind)
	}
}

// validity decides the condition Valid: is there a Service of a type that can be exported?
func validity(w wish, service *Service) clustermesh.ExportStatus {
	s := clustermesh.ExportStatus{Service: w.service}
	switch {
	case service == nil:
		s.Reason = string(mcsv1beta1.ServiceExportReasonNoService)
		s.Message = fmt.Sprintf("there is no Service %s", w.service)
	case service.traits.Value().kind == corev1.ServiceTypeExternalName:
		s.Reason = string(mcsv1beta1.ServiceExportReasonInvalidServiceType)
		s.Message = "a Service of type ExternalName cannot be exported"
	case service.derivedFor != "":
		s.Reason = string(mcsv1beta1.ServiceExportReasonInvalidServiceType)
		s.Message = "a Service that strait made for a ServiceImport cannot be exported"
	case service.elsewhere():
		s.Reason = string(mcsv1beta1.ServiceExportReasonInvalidServiceType)
		s.Message = "a Service that another system made of another cluster's cannot be exported"
	default:
		s.Valid = true
		s.Reason = string(mcsv1beta1.ServiceExportReasonValid)
	}
	return s
}
