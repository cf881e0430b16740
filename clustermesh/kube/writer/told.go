package writer

import (
	"context"
	"crypto/sha256"
	"fmt"
	"os"
	"slices"
	"strings"
	"sync"

	corev1 "k8s.io/api/core/v1"
	eventsv1 "k8s.io/api/events/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	mcsv1beta1 "sigs.k8s.io/mcs-api/pkg/apis/v1beta1"

	"strait.io/strait/clustermesh"
	"strait.io/strait/clustermesh/mcs"
)

// teller makes Events of the Problems of Services and exports.
type teller struct {
	*term
	mu   sync.Mutex
	told map[clustermesh.ServiceName][]clustermesh.Problem // in this term
}

// resources are the kinds that Problems are told of, by their names in Problems. The versions are those that package kube
// reads.
var resources = map[string]schema.GroupVersionResource{
	"Service":                           corev1.SchemeGroupVersion.WithResource("services"),
	mcsv1beta1.ServiceExportKindName:    mcsVersion.WithResource(mcsv1beta1.ServiceExportPluralName),
	"ServiceExport.net.gke.io":          {Group: "net.gke.io", Version: "v1", Resource: "serviceexports"},
	"ServiceExport.multicluster.k8s.io": {Group: "multicluster.k8s.io", Version: "v1alpha1", Resource: "serviceexports"},
}

// problems makes an Event of each Problem of a service that is new. What fails for a while is tried again.
func (t *teller) problems(ctx context.Context, s clustermesh.ServiceName) error {
	now := t.latest().ToTell(s)
	for _, p := range t.fresh(s, now) {
		if !t.leading() {
			return errStopped
		}
		kind, _, _ := strings.Cut(p.Object, " ")
		resource, known := resources[kind]
		if !known {
			continue
		}
		// Who describes an object sees the Events of its UID.
		o, err := t.dynamic.Resource(resource).Namespace(s.Namespace).Get(ctx, s.Name, metav1.GetOptions{})
		if apierrors.IsNotFound(err) {
			continue // its Problems went with it
		}
		if err == nil {
			err = t.event(ctx, o, p)
		}
		if err != nil {
			return fmt.Errorf("tell of %s: %w", p.Object, err)
		}
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	if delete(t.told, s); len(now) > 0 {
		t.told[s] = now
	}
	return nil
}

// fresh returns those of now that were not told.
func (t *teller) fresh(s clustermesh.ServiceName, now []clustermesh.Problem) (out []clustermesh.Problem) {
	t.mu.Lock()
	defer t.mu.Unlock()
	for _, p := range now {
		if !slices.Contains(t.told[s], p) {
			out = append(out, p)
		}
	}
	return out
}

func (t *teller) event(ctx context.Context, o *unstructured.Unstructured, p clustermesh.Problem) error {
	_, err := t.core.EventsV1().Events(o.GetNamespace()).Create(ctx, problemEvent(o, p), metav1.CreateOptions{})
	switch {
	case apierrors.IsAlreadyExists(err), apierrors.HasStatusCause(err, corev1.NamespaceTerminatingCause):
		return nil // an earlier leader told of it; or nobody is left to read
	case apierrors.IsForbidden(err), apierrors.IsInvalid(err):
		t.log.Warn("event refused", "problem", p.String(), "err", err)
		return nil
	}
	return err
}

// problemEvent is the Event of a Problem of an object. It has the same name whoever makes it, so that each leader
// may make it anew and there is still one. client-go's recorder would take two Problems of one object for one.
func problemEvent(o *unstructured.Unstructured, p clustermesh.Problem) *eventsv1.Event {
	note := p
	note.Object, note.File = "", ""
	sum := sha256.Sum256([]byte(string(o.GetUID()) + "\n" + note.String()))
	host, _ := os.Hostname()
	return &eventsv1.Event{
		ObjectMeta:          metav1.ObjectMeta{Namespace: o.GetNamespace(), Name: fmt.Sprintf("%s.%x", o.GetName(), sum[:8])},
		EventTime:           metav1.NowMicro(),
		ReportingController: mcs.FieldManager, ReportingInstance: mcs.FieldManager + "-" + host,
		Action: "Read", Reason: "Misconfigured", Type: corev1.EventTypeWarning, Note: shortNote(note.String()),
		Regarding: corev1.ObjectReference{
			APIVersion: o.GetAPIVersion(), Kind: o.GetKind(), Namespace: o.GetNamespace(), Name: o.GetName(), UID: o.GetUID(), FieldPath: p.Field,
		},
	}
}
