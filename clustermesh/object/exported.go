package object

import (
	"fmt"
	"maps"
	"slices"

	"k8s.io/apimachinery/pkg/util/validation"

	"strait.io/strait/clustermesh"
	"strait.io/strait/internal/problem"
)

// selection is which labels, or annotations, of an export go to other clusters.
type selection struct {
	kept    map[string]string
	omitted []string // field paths, with the reason unless malformed
}

// exportedLabels returns the labels that an import can have in any cluster. A label that an API
// server would refuse is left out, because it would block the whole import.
func exportedLabels(in map[string]string, o *objectReport) selection {
	return exported("spec.exportedLabels", in, o, validation.IsValidLabelValue)
}

func exportedAnnotations(in map[string]string, o *objectReport) selection {
	return exported("spec.exportedAnnotations", in, o, func(string) []string { return nil })
}

func exported(field string, in map[string]string, o *objectReport, value func(string) []string) selection {
	out := selection{kept: map[string]string{}}
	for _, k := range slices.Sorted(maps.Keys(in)) {
		msgs := validation.IsQualifiedName(k)
		if len(msgs) == 0 {
			msgs = value(in[k])
		}
		if len(msgs) > 0 {
			path := fmt.Sprintf("%s[%q]", field, k)
			o.problem(problem.ValueInvalid, path, "is not valid: not exported", msgs[0])
			out.omitted = append(out.omitted, path)
			continue
		}
		out.kept[k] = in[k]
	}
	if err := clustermesh.CheckExported(out.kept); err != nil {
		o.problem(problem.ValueInvalid, field, err.Error()+": none is exported", "export fewer or shorter ones")
		return selection{omitted: []string{fmt.Sprintf("%s (%s)", field, err)}}
	}
	if len(out.kept) == 0 {
		out.kept = nil
	}
	return out
}
