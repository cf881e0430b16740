package mcs

import (
	"encoding/json"
	"slices"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"strait.io/strait/clustermesh/object"
	"strait.io/strait/clustermesh/written"
)

// ours returns the labels ("f:labels") or annotations ("f:annotations") of an object that strait
// wrote, according to the API server's managed fields. All others belong to other writers, and must
// not be compared or removed.
func ours(fields []metav1.ManagedFieldsEntry, of string, all map[string]string) map[string]string {
	out := map[string]string{}
	for _, f := range fields {
		for key := range wrote(f).Metadata[of] {
			name, ok := strings.CutPrefix(key, "f:")
			if v, there := all[name]; ok && there {
				out[name] = v
			}
		}
	}
	return out
}

// wroteIPs reports whether strait wrote an import's ips, according to the managed fields.
func wroteIPs(fields []metav1.ManagedFieldsEntry) bool {
	return slices.ContainsFunc(fields, func(f metav1.ManagedFieldsEntry) bool { return wrote(f).Spec["f:ips"] != nil })
}

// ClustersOfOthers returns the clusters in an import's status that other writers have put there,
// according to the managed fields. An apply of strait's does not remove them.
func ClustersOfOthers(fields []metav1.ManagedFieldsEntry) (out []string) {
	for _, f := range fields {
		for key := range byOthers(f).Clusters {
			var c struct {
				Cluster string `json:"cluster"`
			}
			if text, is := strings.CutPrefix(key, "k:"); is && json.Unmarshal([]byte(text), &c) == nil {
				out = append(out, c.Cluster)
			}
		}
	}
	slices.Sort(out)
	return slices.Compact(out)
}

// ConflictOfOthers reports whether another writer has put the condition Conflict into an export's
// status.
func ConflictOfOthers(fields []metav1.ManagedFieldsEntry) bool {
	return slices.ContainsFunc(fields, func(f metav1.ManagedFieldsEntry) bool {
		return byOthers(f).Conditions[`k:{"type":"`+conflict+`"}`] != nil
	})
}

// othersStatus is the part of other managers' fields that is read here.
type othersStatus struct {
	Clusters   map[string]json.RawMessage `json:"f:clusters,omitempty"`
	Conditions map[string]json.RawMessage `json:"f:conditions,omitempty"`
}

// byOthers returns what of a status another writer wrote according to one entry.
func byOthers(f metav1.ManagedFieldsEntry) othersStatus {
	var set struct {
		Status othersStatus `json:"f:status"`
	}
	if f.Manager == written.Manager || f.Manager == written.StatusManager || f.FieldsV1 == nil || json.Unmarshal(f.FieldsV1.GetRawBytes(), &set) != nil {
		return othersStatus{}
	}
	return set.Status
}

// OthersOnly returns other writers' entries, reduced to what ClustersOfOthers and ConflictOfOthers
// read. Usually there are none.
func OthersOnly(fields []metav1.ManagedFieldsEntry) (out []metav1.ManagedFieldsEntry) {
	for _, f := range fields {
		one := []metav1.ManagedFieldsEntry{f}
		clusters, condition := ClustersOfOthers(one), ConflictOfOthers(one)
		if len(clusters) == 0 && !condition {
			continue
		}
		theirs := othersStatus{Clusters: byOthers(f).Clusters}
		if condition {
			theirs.Conditions = map[string]json.RawMessage{`k:{"type":"` + conflict + `"}`: json.RawMessage("{}")}
		}
		if short, err := json.Marshal(map[string]othersStatus{"f:status": theirs}); err == nil {
			out = append(out, metav1.ManagedFieldsEntry{Manager: f.Manager, Operation: f.Operation, Subresource: f.Subresource, FieldsV1: metav1.NewFieldsV1(string(short))})
		}
	}
	return out
}

// InEveryApply reports whether an entry has only fields of an import that every apply of strait's
// has too. Such a field cannot stay by mistake because an apply leaves it out.
func InEveryApply(f metav1.ManagedFieldsEntry) bool {
	set := wrote(f)
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

// fieldSet is the part of a manager's fields that is read here.
type fieldSet struct {
	Metadata map[string]map[string]any `json:"f:metadata"`
	Spec     map[string]any            `json:"f:spec"`
}

// wrote returns the fields that strait wrote according to one entry. An entry that does not parse
// is treated as not strait's; the next apply writes its fields again.
func wrote(f metav1.ManagedFieldsEntry) (out fieldSet) {
	if f.Manager != written.Manager || f.FieldsV1 == nil || json.Unmarshal(f.FieldsV1.GetRawBytes(), &out) != nil {
		return fieldSet{}
	}
	return out
}
