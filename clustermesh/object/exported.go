package object

import (
	"fmt"
	"maps"
	"slices"

	"k8s.io/apimachinery/pkg/util/validation"

	"strait.io/strait/clustermesh"
)

// exportedLabels returns the labels that may stand on an import in any cluster. A label that an API server
// would refuse is left out: it would stop the whole import.
func exportedLabels(in map[string]string, o *objectReport) map[string]string {
	return exported("spec.exportedLabels", in, o, validation.IsValidLabelValue)
}

func exportedAnnotations(in map[string]string, o *objectReport) map[string]string {
	return exported("spec.exportedAnnotations", in, o, func(string) []string { return nil })
}

func exported(field string, in map[string]string, o *objectReport, value func(string) []string) map[string]string {
	out := map[string]string{}
	for _, k := range slices.Sorted(maps.Keys(in)) {
		msgs := validation.IsQualifiedName(k)
		if len(msgs) == 0 {
			msgs = value(in[k])
		}
		if len(msgs) > 0 {
			o.problem(fmt.Sprintf("%s[%q]", field, k), "is not valid: not exported", msgs[0])
			continue
		}
		out[k] = in[k]
	}
	if err := clustermesh.CheckExported(out); err != nil {
		o.problem(field, err.Error()+": none is exported", "export fewer or shorter ones")
		return nil
	}
	if len(out) == 0 {
		return nil
	}
	return out
}
