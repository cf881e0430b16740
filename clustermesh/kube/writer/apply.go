package writer

import (
	"context"
	"errors"
	"fmt"
	"strings"

	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/sets"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/util/csaupgrade"
	mcsv1beta1 "sigs.k8s.io/mcs-api/pkg/apis/v1beta1"

	"strait.io/strait/clustermesh/mcs"
	"strait.io/strait/clustermesh/written"
)

// mcsVersion is the version of the MCS API that strait writes if it is served.
var mcsVersion = schema.GroupVersion(mcsv1beta1.GroupVersion)

// kind is how a kind of objects is written.
type kind struct {
	name     string // without a group
	version  schema.GroupVersion
	resource string
	empty    func() metav1.Object
}

// kinds are the kinds of objects that operations write, by name. See kindOf for the version of
// those of the MCS API.
var kinds = map[string]kind{
	"Service":       {"Service", corev1.SchemeGroupVersion, "services", func() metav1.Object { return &corev1.Service{} }},
	"EndpointSlice": {"EndpointSlice", discoveryv1.SchemeGroupVersion, "endpointslices", func() metav1.Object { return &discoveryv1.EndpointSlice{} }},
	mcsv1beta1.ServiceImportKindName: {mcsv1beta1.ServiceImportKindName, mcsVersion, mcsv1beta1.ServiceImportPluralName,
		func() metav1.Object { return &mcsv1beta1.ServiceImport{} }},
	mcsv1beta1.ServiceExportKindName: {mcsv1beta1.ServiceExportKindName, mcsVersion, mcsv1beta1.ServiceExportPluralName,
		func() metav1.Object { return &mcsv1beta1.ServiceExport{} }},
	written.OldExport: {mcsv1beta1.ServiceExportKindName, foreignKinds[0].version, foreignKinds[0].plural, func() metav1.Object { return &oldExport{} }},
	written.OldImport: {mcsv1beta1.ServiceImportKindName, foreignKinds[1].version, foreignKinds[1].plural, func() metav1.Object { return &oldImport{} }},
	written.GKEImport: {mcsv1beta1.ServiceImportKindName, foreignKinds[2].version, foreignKinds[2].plural, func() metav1.Object { return &gkeImport{} }},
}

// write carries out one operation and takes the API server's answer into the store.
func (t *term) write(ctx context.Context, o written.Op) error {
	obj := o.Object
	kind := t.kindOf(o.Kind)
	api := t.dynamic.Resource(kind.version.WithResource(kind.resource)).Namespace(obj.GetNamespace())
	if o.Verb == written.Delete {
		return t.remove(ctx, api, o)
	}
	if o.Verb == written.Apply {
		if err := t.adopt(ctx, api, o); err != nil {
			return err
		}
	}
	answer, err := t.send(ctx, api, o)
	t.count(o, err)
	if o.Service() != nil {
		t.judgeDistribution(o, answer, err)
	}
	switch {
	case o.Service() == nil:
	case o.Verb == written.Create:
		err = t.judge(ctx, api, o, err)
	default:
		s, _ := mcs.ServiceOf(o.Service())
		trouble := t.store.have(s).Trouble
		trouble.Refused = refusal(err)
		t.store.setTrouble(s, trouble)
	}
	if err != nil {
		return err
	}
	return t.take(o, answer)
}

// remove deletes an object. The UID is a precondition, so that it never deletes another object of
// the same name.
func (t *term) remove(ctx context.Context, api dynamic.ResourceInterface, o written.Op) error {
	obj, uid, background := o.Object, o.Object.GetUID(), metav1.DeletePropagationBackground
	if mcs.Foreign(o) { // the store tells kinds apart by their types
		obj = kinds[o.Kind].empty()
		obj.SetNamespace(o.Object.GetNamespace())
		obj.SetName(o.Object.GetName())
		obj.SetUID(uid)
	}
	t.store.deleting(obj, true)
	err := api.Delete(ctx, obj.GetName(), metav1.DeleteOptions{
		Preconditions: &metav1.Preconditions{UID: &uid}, PropagationPolicy: &background,
	})
	t.count(o, err)
	// Not found: it is gone. Conflict: an object with another UID has its name by now.
	if err == nil || apierrors.IsNotFound(err) || apierrors.IsConflict(err) {
		t.store.drop(obj)
		return nil
	}
	t.store.deleting(obj, false)
	return err
}

// send creates or applies an object, and returns the API server's answer.
func (t *term) send(ctx context.Context, api dynamic.ResourceInterface, o written.Op) (*unstructured.Unstructured, error) {
	name := o.Object.GetName()
	b, err := body(o, t.kindOf(o.Kind))
	if err != nil {
		return nil, err
	}
	switch {
	case o.Verb == written.Create:
		return api.Create(ctx, b, metav1.CreateOptions{FieldManager: mcs.FieldManager})
	case o.Verb == written.ApplyStatus && t.servedKind(o.Kind).NoStatus:
		// By another manager: one that applies only the status would give up the spec.
		return api.Apply(ctx, name, b, metav1.ApplyOptions{FieldManager: mcs.StatusManager, Force: o.Force})
	case o.Verb == written.ApplyStatus:
		return api.ApplyStatus(ctx, name, b, metav1.ApplyOptions{FieldManager: mcs.FieldManager, Force: o.Force})
	}
	return api.Apply(ctx, name, b, metav1.ApplyOptions{FieldManager: mcs.FieldManager, Force: o.Force})
}

// body returns the object to send: the fields that the operation writes, without empty ones, whose
// ownership an apply would claim.
func body(o written.Op, k kind) (*unstructured.Unstructured, error) {
	fields, err := runtime.DefaultUnstructuredConverter.ToUnstructured(o.Object)
	if err != nil {
		return nil, fmt.Errorf("encode %s: %w", o.Target(), err)
	}
	u := &unstructured.Unstructured{Object: fields}
	u.SetGroupVersionKind(k.version.WithKind(k.name))
	unstructured.RemoveNestedField(fields, "metadata", "creationTimestamp")
	switch {
	case o.Verb == written.ApplyStatus:
		unstructured.RemoveNestedField(fields, "spec")
		// An apply that gives up all fields of a status makes it null, which the API server
		// refuses.
		if status, _ := fields["status"].(map[string]any); len(status) == 0 && mcs.ImportOf(o) != nil {
			fields["status"] = map[string]any{"clusters": []any{}}
		}
	default:
		unstructured.RemoveNestedField(fields, "status")
	}
	// A user's import keeps its ports and type.
	if mcs.ImportOf(o) != nil && o.Verb == written.Apply && !o.Force {
		unstructured.RemoveNestedField(fields, "spec", "ports")
		unstructured.RemoveNestedField(fields, "spec", "type")
	}
	return u, nil
}

// adopt moves ownership of the fields that a Create of ours wrote to our applies. Otherwise a field
// that a later apply leaves out would stay, owned by the Create. Slices do not need this, because
// they always apply the same fields, nor do imports of other groups, whose Create has only those.
func (t *term) adopt(ctx context.Context, api dynamic.ResourceInterface, o written.Op) error {
	if o.Slice() != nil || !o.Force || mcs.Foreign(o) {
		return nil
	}
	s, _ := serviceOf(o.Object)
	have := t.store.have(s)
	var live runtime.Object
	if mcs.ImportOf(o) != nil && have.Import != nil {
		live = have.Import
	}
	for _, svc := range have.Services {
		if o.Service() != nil && svc.Name == o.Service().Name && adoptable(svc.ManagedFields) {
			// The store does not keep the Service's field owners, because Services are many and
			// this is rare.
			whole, err := t.core.CoreV1().Services(svc.Namespace).Get(ctx, svc.Name, metav1.GetOptions{})
			if err != nil {
				return err
			}
			live = whole
		}
	}
	if live == nil {
		return nil // nothing to adopt, or deleted meanwhile, which the apply will report
	}
	patch, err := csaupgrade.UpgradeManagedFieldsPatch(live, sets.New(mcs.FieldManager), mcs.FieldManager)
	if err != nil || patch == nil {
		return err
	}
	_, err = api.Patch(ctx, o.Object.GetName(), types.JSONPatchType, patch, metav1.PatchOptions{FieldManager: mcs.FieldManager})
	t.count(written.Op{Verb: written.Adopt, Kind: o.Kind, Object: o.Object}, err)
	return err
}

// judgeDistribution remembers a traffic distribution that the API server refused, or dropped
// because it does not know the field. It does so until the term ends: a server does not get newer
// every day.
func (t *term) judgeDistribution(o written.Op, answer *unstructured.Unstructured, err error) {
	sent := o.Service().Spec.TrafficDistribution
	if sent == nil {
		return
	}
	refused := apierrors.IsInvalid(err) && strings.Contains(err.Error(), "spec.trafficDistribution")
	if err == nil {
		_, kept, _ := unstructured.NestedString(answer.Object, "spec", "trafficDistribution")
		refused = !kept
	}
	if refused {
		s, _ := mcs.ServiceOf(o.Service())
		trouble := t.store.have(s).Trouble
		trouble.RefusedDistribution = *sent
		t.store.setTrouble(s, trouble)
	}
}

// judge finds out why a derived Service could not be created, and remembers that as Trouble. After
// a success it clears the Trouble, except OwnNameTaken. An existing Service of that name is taken
// into the store if it is strait's, such as one made by an earlier leader. judge returns err, or
// the error of reading or decoding the existing Service.
func (t *term) judge(ctx context.Context, api dynamic.ResourceInterface, o written.Op, err error) error {
	s, _ := mcs.ServiceOf(o.Service())
	was := t.store.have(s).Trouble
	// OwnNameTaken stays until the name is free. Otherwise the two names would be tried
	// alternately.
	trouble := mcs.Trouble{OwnNameTaken: was.OwnNameTaken, RefusedDistribution: was.RefusedDistribution, RefusedSlices: was.RefusedSlices}
	if err != nil {
		trouble.AddressRefused = was.AddressRefused
	}
	switch {
	case apierrors.IsAlreadyExists(err):
		live, getErr := api.Get(ctx, o.Service().Name, metav1.GetOptions{})
		if getErr != nil {
			return getErr
		}
		if takeErr := t.take(o, live); takeErr != nil {
			return takeErr
		}
		have, ours := mcs.ServiceOf(&corev1.Service{ObjectMeta: metav1.ObjectMeta{Namespace: live.GetNamespace(), Labels: live.GetLabels()}})
		taken := !ours || have != s
		trouble.OwnNameTaken = trouble.OwnNameTaken || taken && o.Service().Name == s.Name
		trouble.NameTaken = taken && o.Service().Name != s.Name
	case addressRefused(o, err):
		trouble.AddressRefused++
	case apierrors.IsInvalid(err) && blames(err, "spec.ipFamilies"):
		trouble.FamilyNotSupported = true
	default:
		trouble.Refused = refusal(err)
	}
	t.store.setTrouble(s, trouble)
	return err
}

// refusal returns what the API server said to an object that it will refuse again; empty for other
// errors, and for a traffic distribution, which is lowered.
func refusal(err error) string {
	var status apierrors.APIStatus
	if !errors.As(err, &status) || apierrors.HasStatusCause(err, corev1.NamespaceTerminatingCause) || blames(err, "spec.trafficDistribution") {
		return ""
	}
	if apierrors.IsForbidden(err) || apierrors.IsInvalid(err) || apierrors.IsBadRequest(err) {
		return status.Status().Message
	}
	return ""
}

// take decodes an answer of the API server into the store.
func (t *term) take(o written.Op, answer *unstructured.Unstructured) error {
	obj := kinds[o.Kind].empty()
	if err := runtime.DefaultUnstructuredConverter.FromUnstructured(answer.Object, obj); err != nil {
		return fmt.Errorf("decode %s: %w", o.Target(), err)
	}
	trim(obj)
	t.store.answered(obj)
	return nil
}
