package writer

import (
	"context"
	"crypto/sha256"
	"fmt"
	"os"
	"strings"

	corev1 "k8s.io/api/core/v1"
	eventsv1 "k8s.io/api/events/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"strait.io/strait/clustermesh"
	"strait.io/strait/clustermesh/written"
)

// Events are created directly, without client-go's recorder. The recorder keeps each Event for six
// minutes, to count repetitions, and has a goroutine for each Event that waits to be written: that
// was an eighth of the heap of a leader that had just made 1,000 imports. It also takes two
// Problems of one object for the same Event.

// createEvents makes the Events of an operation that succeeded, or only the warnings among them. They are
// for people: one that is refused is logged, and not retried.
func (t *term) createEvents(ctx context.Context, o written.Op, warnings bool) {
	obj, kind := o.Object, t.kindOf(o.Kind)
	about := corev1.ObjectReference{
		APIVersion: kind.GroupVersion().String(), Kind: kind.Kind,
		Namespace: obj.GetNamespace(), Name: obj.GetName(), UID: obj.GetUID(), ResourceVersion: obj.GetResourceVersion(),
	}
	service := clustermesh.ServiceName{Namespace: about.Namespace, Name: about.Name}
	for _, e := range o.Events {
		if warnings && (!e.Warning || e.News) || e.News && !t.bounds.take(service) {
			continue
		}
		t.createEvent(ctx, about, e)
		if e.Service {
			t.serviceEvent(ctx, service, e)
		}
	}
}

// serviceEvent makes an Event of the Service of a name, if there is one: its UID must be in the Event.
func (t *term) serviceEvent(ctx context.Context, s clustermesh.ServiceName, e written.Event) {
	o, err := t.Core.Services(s.Namespace).Get(ctx, s.Name, metav1.GetOptions{})
	if err == nil {
		t.createEvent(ctx, corev1.ObjectReference{APIVersion: "v1", Kind: written.Service, Namespace: s.Namespace, Name: s.Name, UID: o.UID}, e)
	} else if !apierrors.IsNotFound(err) && ctx.Err() == nil {
		t.Log.Warn("event not created", "about", written.Service+" "+s.String(), "reason", e.Reason, "err", err)
	}
}

func (t *term) createEvent(ctx context.Context, about corev1.ObjectReference, e written.Event) {
	severity := corev1.EventTypeNormal
	if e.Warning {
		severity = corev1.EventTypeWarning
	}
	event := newEvent(about, eventName(about, e.Change), severity, "Reconcile", e.Reason, e.Message)
	_, err := t.Core.Events(about.Namespace).Create(ctx, event, metav1.CreateOptions{})
	if err != nil && !apierrors.IsAlreadyExists(err) && !nobodyReads(err) && ctx.Err() == nil {
		t.Log.Warn("event not created", "about", about.Kind+" "+about.Namespace+"/"+about.Name, "reason", e.Reason, "err", err)
	}
}

// eventName names an Event by its object and its text, not by its writer or time: if two leaders
// report the same, the second finds that the Event exists.
func eventName(about corev1.ObjectReference, text string) string {
	sum := sha256.Sum256([]byte(string(about.UID) + "\n" + text))
	return fmt.Sprintf("%s.%x", about.Name, sum[:8])
}

// problemEvent returns the Event for a Problem of an object.
func problemEvent(o *unstructured.Unstructured, p clustermesh.Problem) *eventsv1.Event {
	note := p
	note.Object, note.File = "", ""
	about := corev1.ObjectReference{
		APIVersion: o.GetAPIVersion(), Kind: o.GetKind(), Namespace: o.GetNamespace(), Name: o.GetName(), UID: o.GetUID(), FieldPath: p.Field,
	}
	return newEvent(about, eventName(about, note.String()), corev1.EventTypeWarning, "Read", "Misconfigured",
		string(p.Code)+": "+note.String())
}

func newEvent(about corev1.ObjectReference, name, kind, action, reason, note string) *eventsv1.Event {
	host, _ := os.Hostname()
	return &eventsv1.Event{
		ObjectMeta:          metav1.ObjectMeta{Namespace: about.Namespace, Name: name},
		EventTime:           metav1.NowMicro(),
		ReportingController: written.Manager, ReportingInstance: written.Manager + "-" + host,
		Type: kind, Action: action, Reason: reason, Note: shortNote(note), Regarding: about,
	}
}

// nobodyReads reports whether a namespace is being deleted or gone, so that no Event can be created
// there.
func nobodyReads(err error) bool {
	return apierrors.HasStatusCause(err, corev1.NamespaceTerminatingCause) || apierrors.IsNotFound(err)
}

// maxNote is the API's limit for the text of an Event.
const maxNote = 1024

func shortNote(s string) string {
	if len(s) <= maxNote {
		return s
	}
	return strings.ToValidUTF8(s[:maxNote-4], "") + " …"
}
