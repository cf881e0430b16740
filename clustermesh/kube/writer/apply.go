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
	"k8s.io/apimachinery/pkg/util/sets"
	"k8s.io/client-go/util/csaupgrade"
	mcsv1beta1 "sigs.k8s.io/mcs-api/pkg/apis/v1beta1"

	"strait.io/strait/clustermesh/kube/write"
	"strait.io/strait/clustermesh/mcs"
	"strait.io/strait/clustermesh/written"
)

// mcsVersion is the version of the MCS API that strait writes if it is served.
var mcsVersion = schema.GroupVersion(mcsv1beta1.GroupVersion)

var services = corev1.SchemeGroupVersion.WithResource("services")

// empty makes an object of a kind.
var empty = map[string]func() metav1.Object{
	written.Service:       func() metav1.Object { return &corev1.Service{} },
	written.EndpointSlice: func() metav1.Object { return &discoveryv1.EndpointSlice{} },
	written.ServiceImport: func() metav1.Object { return &mcsv1beta1.ServiceImport{} },
	written.ServiceExport: func() metav1.Object { return &mcsv1beta1.ServiceExport{} },
	written.OldExport:     func() metav1.Object { return &oldExport{} },
	written.OldImport:     func() metav1.Object { return &oldImport{} },
	written.GKEImport:     func() metav1.Object { return &gkeImport{} },
}

// write carries out one operation and takes the API server's answer into the store.
func (t *term) write(ctx context.Context, o written.Op) error {
	if o.Verb == written.Delete {
		return t.remove(ctx, o)
	}
	if o.Verb == written.Apply {
		if err := t.adopt(ctx, o); err != nil {
			return err
		}
	}
	answer, err := t.send(ctx, o)
	if errors.Is(err, write.ErrStopped) {
		return err
	}
	if o.Service() != nil {
		t.judgeDistribution(o, answer, err)
	}
	switch {
	case o.Service() == nil:
	case o.Verb == written.Create:
		err = t.judge(ctx, o, err)
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

// remove deletes an object.
func (t *term) remove(ctx context.Context, o written.Op) error {
	obj := o.Object
	if mcs.Foreign(o) { // the store tells kinds apart by their types
		obj = empty[o.Kind]()
		obj.SetNamespace(o.Object.GetNamespace())
		obj.SetName(o.Object.GetName())
		obj.SetUID(o.Object.GetUID())
	}
	t.store.deleting(obj, true)
	_, err := t.Do(ctx, t.versioned(o))
	// Not found: it is gone. Conflict: an object with another UID has its name by now.
	if err == nil || apierrors.IsNotFound(err) || apierrors.IsConflict(err) {
		t.store.drop(obj)
		return nil
	}
	t.store.deleting(obj, false)
	return err
}

// send creates or applies an object, and returns the API server's answer.
func (t *term) send(ctx context.Context, o written.Op) (*unstructured.Unstructured, error) {
	b, err := body(o)
	if err != nil {
		return nil, err
	}
	o.Object = b
	return t.Do(ctx, t.versioned(o))
}

// versioned returns an operation for what the API server serves of its kind.
func (t *term) versioned(o written.Op) written.Op {
	o.Version, o.NoSubresource = t.kindOf(o.Kind).Version, t.servedKind(o.Kind).NoStatus
	return o
}

// body returns the fields of an import that an operation writes, which are not those that would be there
// without a value; the object itself for other kinds.
func body(o written.Op) (*unstructured.Unstructured, error) {
	fields, err := runtime.DefaultUnstructuredConverter.ToUnstructured(o.Object)
	if err != nil {
		return nil, fmt.Errorf("encode %s: %w", o.Target(), err)
	}
	// An apply that gives up all fields of a status makes it null, which the API server refuses.
	if status, _ := fields["status"].(map[string]any); o.Verb == written.ApplyStatus && len(status) == 0 && mcs.ImportOf(o) != nil {
		fields["status"] = map[string]any{"clusters": []any{}}
	}
	// A user's import keeps its ports and type.
	if mcs.ImportOf(o) != nil && o.Verb == written.Apply && !o.Force {
		unstructured.RemoveNestedField(fields, "spec", "ports")
		unstructured.RemoveNestedField(fields, "spec", "type")
	}
	return &unstructured.Unstructured{Object: fields}, nil
}

// adopt moves ownership of the fields that a Create of ours wrote to our applies. Otherwise a field
// that a later apply leaves out would stay, owned by the Create. Slices do not need this, because
// they always apply the same fields, nor do imports of other groups, whose Create has only those.
func (t *term) adopt(ctx context.Context, o written.Op) error {
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
			whole, err := t.Core.Services(svc.Namespace).Get(ctx, svc.Name, metav1.GetOptions{})
			if err != nil {
				return err
			}
			live = whole
		}
	}
	if live == nil {
		return nil // nothing to adopt, or deleted meanwhile, which the apply will report
	}
	patch, err := csaupgrade.UpgradeManagedFieldsPatch(live, sets.New(written.Manager), written.Manager)
	if err != nil || patch == nil {
		return err
	}
	_, err = t.Do(ctx, t.versioned(written.Op{Verb: written.Adopt, Kind: o.Kind, Object: o.Object, Patch: patch}))
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
func (t *term) judge(ctx context.Context, o written.Op, err error) error {
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
		live, getErr := t.Dynamic.Resource(services).Namespace(s.Namespace).Get(ctx, o.Service().Name, metav1.GetOptions{})
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

// refusal returns the API server's answer to an object that it will refuse again; empty for other
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
	obj := empty[o.Kind]()
	if err := runtime.DefaultUnstructuredConverter.FromUnstructured(answer.Object, obj); err != nil {
		return fmt.Errorf("decode %s: %w", o.Target(), err)
	}
	trim(obj)
	t.store.answered(obj)
	return nil
}
