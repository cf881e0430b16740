package writer

import (
	"encoding/json"
	"slices"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	mcsv1beta1 "sigs.k8s.io/mcs-api/pkg/apis/v1beta1"

	"strait.io/strait/clustermesh/mcs"
	"strait.io/strait/clustermesh/written"
)

// trim removes from an object, in place, what neither mcs.Diff nor a write reads. It is idempotent.
// Slices are trimmed by the store.
func trim(o any) {
	switch o := o.(type) {
	case *oldExport:
		trim(&o.ServiceExport)
	case *oldImport:
		trim(&o.ServiceImport)
	case *gkeImport:
		trim(&o.ServiceImport)
	case *mcsv1beta1.ServiceImport:
		if !adoptable(o.ManagedFields) { // adopting needs all of them, unchanged
			o.ManagedFields = append(metadataOnly(o.ManagedFields, !mcs.OurImport(o)), mcs.OthersOnly(o.ManagedFields)...)
		}
	case *mcsv1beta1.ServiceExport:
		o.ManagedFields, o.Labels, o.Annotations = mcs.OthersOnly(o.ManagedFields), nil, nil
		o.Spec = mcsv1beta1.ServiceExportSpec{}
	case *corev1.Service:
		adopt := adoptable(o.ManagedFields)
		o.ManagedFields, o.Annotations = nil, nil
		if adopt {
			o.ManagedFields = created
		}
		o.Status = corev1.ServiceStatus{}
	}
}

// created is the shortest ManagedFields that make an object adoptable.
var created = []metav1.ManagedFieldsEntry{{Manager: written.Manager, Operation: metav1.ManagedFieldsOperationUpdate}}

// adoptable reports whether fields that a Create of ours wrote are not owned by our applies yet.
func adoptable(fields []metav1.ManagedFieldsEntry) bool {
	return slices.ContainsFunc(fields, func(f metav1.ManagedFieldsEntry) bool { return byCreate(f) && !mcs.InEveryApply(f) })
}

// byCreate reports whether a Create of ours made the entry.
func byCreate(f metav1.ManagedFieldsEntry) bool {
	return f.Manager == written.Manager && f.Operation == metav1.ManagedFieldsOperationUpdate && f.Subresource == ""
}

// metadataOnly returns our own entries, reduced to the fields of the metadata and, if ips is true,
// spec.ips. Entries without any of these are dropped. An entry that does not parse keeps its
// fields.
func metadataOnly(fields []metav1.ManagedFieldsEntry, ips bool) (out []metav1.ManagedFieldsEntry) {
	for _, f := range fields {
		if f.Manager != written.Manager || f.FieldsV1 == nil || byCreate(f) {
			continue // not ours, or from a Create whose fields are in every apply
		}
		var fields struct {
			Metadata json.RawMessage `json:"f:metadata,omitempty"`
			Spec     struct {
				IPs json.RawMessage `json:"f:ips,omitempty"`
			} `json:"f:spec,omitzero"`
		}
		err := json.Unmarshal(f.FieldsV1.GetRawBytes(), &fields)
		if !ips {
			fields.Spec.IPs = nil
		}
		if err == nil && fields.Metadata == nil && fields.Spec.IPs == nil {
			continue
		}
		if err == nil {
			if short, err := json.Marshal(fields); err == nil {
				f.FieldsV1 = metav1.NewFieldsV1(string(short))
			}
		}
		out = append(out, metav1.ManagedFieldsEntry{Manager: written.Manager, Operation: f.Operation, Subresource: f.Subresource, FieldsV1: f.FieldsV1})
	}
	return out
}
