package mcs

import (
	"encoding/json"
	"slices"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"strait.io/strait/clustermesh/object"
)

// FieldManager is the name under which strait writes.
const FieldManager = "strait"

// ours returns the entries of an object's labels ("f:labels") or annotations ("f:annotations") that strait wrote,
// by the API server's own account: the others are somebody else's, and not to be compared or removed.
func ours(fields []metav1.ManagedFieldsEntry, of string, all map[string]string) map[string]string {
	out := map[string]string{}
	for _, f := range fields {
		for key := range written(f).Metadata[of] {
			name, ok := strings.CutPrefix(key, "f:")
			if v, there := all[name]; ok && there {
				out[name] = v
			}
		}
	}
	return out
}

// wroteIPs reports that strait wrote an import's ips, by the same account.
func wroteIPs(fields []metav1.ManagedFieldsEntry) bool {
	return slices.ContainsFunc(fields, func(f metav1.ManagedFieldsEntry) bool { return written(f).Spec["f:ips"] != nil })
}

// InEveryApply reports that an entry has only fields of an import that each of strait's applies has
// too: none of them can stay by mistake when an apply leaves it out.
func InEveryApply(f metav1.ManagedFieldsEntry) bool {
	set := written(f)
	for key, of := range set.Metadata {
		for field := range of {
			if key != "f:labels" || field != "." && field != "f:"+object.LabelManagedBy {
				return false
			}
		}
	}
	for field := range set.Spec {
		if field != "." && field != "f:type" && field != "f:ports" {
			return false
		}
	}
	return set.Spec["f:type"] != nil
}

// fieldSet is the part of what a manager wrote that is read here.
type fieldSet struct {
	Metadata map[string]map[string]any `json:"f:metadata"`
	Spec     map[string]any            `json:"f:spec"`
}

// written is what strait wrote by one entry. Entries that do not parse are treated as not ours; the next apply writes them
// anew.
func written(f metav1.ManagedFieldsEntry) (out fieldSet) {
	if f.Manager != FieldManager || f.FieldsV1 == nil || json.Unmarshal(f.FieldsV1.GetRawBytes(), &out) != nil {
		return fieldSet{}
	}
	return out
}
