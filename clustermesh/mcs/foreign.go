package mcs

import (
	"maps"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	mcsv1beta1 "sigs.k8s.io/mcs-api/pkg/apis/v1beta1"

	"strait.io/strait/clustermesh"
	"strait.io/strait/clustermesh/object"
	"strait.io/strait/clustermesh/written"
)

// API groups other than the MCS API's own whose exports or imports strait writes.
const (
	// OldGroup is the group in the text of KEP-1645.
	OldGroup = "multicluster.k8s.io"
	GKEGroup = "net.gke.io"
)

// GKEDerivedAnnotation names the derived Service on a ServiceImport of GKE.
const GKEDerivedAnnotation = GKEGroup + "/derived-service"

// as returns a differ for an import of another group, which stands in for the MCS API's own.
func (d *differ) as(group, kind string, i *mcsv1beta1.ServiceImport) *differ {
	out := *d
	out.group, out.have.Import, out.have.API.Imports = group, i, d.have.API.Foreign[kind]
	out.ops = nil
	return &out
}

// took does what a differ for another group has found.
func (d *differ) took(other *differ) {
	for _, o := range other.ops {
		o.Kind = inGroup(o.Kind, other.group)
		d.do(o)
	}
}

// oldImport writes the addresses and the status of an import of the old group, which a user made.
// strait makes none there.
func (d *differ) oldImport() {
	have := d.have.OldImport
	if _, served := d.have.API.Foreign[written.OldImport]; !served || have == nil || have.DeletionTimestamp != nil || d.wanted && d.have.Import == nil {
		return
	}
	have = have.DeepCopy()
	delete(have.Labels, object.LabelManagedBy) // a user's, whatever its value
	if have.Spec.Type == "" {
		if have.Spec.Type = mcsv1beta1.ClusterSetIP; d.have.Import != nil {
			have.Spec.Type = d.have.Import.Spec.Type
		}
	}
	other := d.as(OldGroup, written.OldImport, have)
	if d.have.Import == nil {
		other.userImport(nil)
	} else if !d.uncertain() {
		other.userImport(d.inForce())
	}
	if !other.settling {
		other.importStatus()
	}
	d.took(other)
}

// gkeImport keeps a copy of the import in GKE's group. GKE's controller has imports of its own
// there, and so may users: they stay as they are.
func (d *differ) gkeImport() {
	_, served := d.have.API.Foreign[written.GKEImport]
	have := d.have.GKEImport
	if !served || have != nil && (!OurImport(have) || have.DeletionTimestamp != nil) {
		return
	}
	other := d.as(GKEGroup, written.GKEImport, have)
	switch {
	case !d.wanted:
		if have != nil && (d.view.complete() || d.barred()) && (d.have.Import == nil || !d.uncertain()) {
			d.deletions = append(d.deletions, written.Op{Verb: written.Delete, Kind: written.GKEImport, Object: &mcsv1beta1.ServiceImport{ObjectMeta: meta(have)}})
		}
		return
	case d.have.Import == nil: // it comes first
		return
	case have == nil:
		want := other.copied(d.have.Import)
		// Only what every apply has; the rest follows.
		other.do(written.Op{Verb: written.Create, Kind: written.ServiceImport, Object: &mcsv1beta1.ServiceImport{
			ObjectMeta: metav1.ObjectMeta{Namespace: want.Namespace, Name: want.Name, Labels: map[string]string{object.LabelManagedBy: object.ManagedBy}},
			Spec:       mcsv1beta1.ServiceImportSpec{Type: want.Spec.Type, Ports: want.Spec.Ports},
		}})
	default:
		if want := other.copied(d.have.Import); !d.uncertain() && !sameImport(have, want) {
			want.UID = have.UID
			other.do(written.Op{Verb: written.Apply, Kind: written.ServiceImport, Object: want, Force: true})
		} else {
			other.importStatus()
		}
	}
	for i := range other.ops {
		other.ops[i].Events = nil // the import itself has them
	}
	d.took(other)
}

// copied returns an import in the schema of the differ's group, with GKE's name for the annotation.
func (d *differ) copied(i *mcsv1beta1.ServiceImport) *mcsv1beta1.ServiceImport {
	out := &mcsv1beta1.ServiceImport{
		ObjectMeta: metav1.ObjectMeta{
			Namespace: i.Namespace, Name: i.Name, Labels: exported(d.imp.Labels), Annotations: exported(d.imp.Annotations),
		},
		Spec: *i.Spec.DeepCopy(),
	}
	maps.DeleteFunc(out.Annotations, func(key, _ string) bool { return key == GKEDerivedAnnotation })
	out.Labels[object.LabelManagedBy] = object.ManagedBy
	if service := i.Annotations[DerivedAnnotation]; service != "" && d.imp.Type == clustermesh.ClusterSetIP {
		out.Annotations[GKEDerivedAnnotation] = service
	}
	return prune(d.have.API.Imports, out)
}
