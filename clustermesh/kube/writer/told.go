package writer

import (
	"context"
	"crypto/sha256"
	"fmt"
	"os"
	"slices"
	"sync"

	corev1 "k8s.io/api/core/v1"
	eventsv1 "k8s.io/api/events/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"strait.io/strait/clustermesh"
	"strait.io/strait/clustermesh/mcs"
)

// teller makes Events of the Problems of Services.
type teller struct {
	*term
	mu   sync.Mutex
	told map[clustermesh.ServiceName][]clustermesh.Problem // in this term
}

// problems makes an Event of each Problem of a Service that is new. What fails for a while is tried again.
func (t *teller) problems(ctx context.Context, s clustermesh.ServiceName) error {
	now := t.latest().Problems[s]
	fresh := t.fresh(s, now)
	if len(fresh) > 0 {
		if !t.leading() {
			return errStopped
		}
		// Who describes a Service sees the Events of its UID.
		service, err := t.core.CoreV1().Services(s.Namespace).Get(ctx, s.Name, metav1.GetOptions{})
		if apierrors.IsNotFound(err) {
			return nil // its Problems went with it
		}
		for i := 0; i < len(fresh) && err == nil; i++ {
			err = t.event(ctx, service, fresh[i])
		}
		if err != nil {
			return fmt.Errorf("tell of Service %s: %w", s, err)
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

func (t *teller) event(ctx context.Context, s *corev1.Service, p clustermesh.Problem) error {
	_, err := t.core.EventsV1().Events(s.Namespace).Create(ctx, problemEvent(s, p), metav1.CreateOptions{})
	switch {
	case apierrors.IsAlreadyExists(err), apierrors.HasStatusCause(err, corev1.NamespaceTerminatingCause):
		return nil // an earlier leader told of it; or nobody is left to read
	case apierrors.IsForbidden(err), apierrors.IsInvalid(err):
		t.log.Warn("event refused", "problem", p.String(), "err", err)
		return nil
	}
	return err
}

// problemEvent is the Event of a Problem of a Service. It has the same name whoever makes it, so that each leader
// may make it anew and there is still one. client-go's recorder would take two Problems of one Service for one.
func problemEvent(s *corev1.Service, p clustermesh.Problem) *eventsv1.Event {
	note := p
	note.Object, note.File = "", ""
	sum := sha256.Sum256([]byte(string(s.UID) + "\n" + note.String()))
	host, _ := os.Hostname()
	return &eventsv1.Event{
		ObjectMeta:          metav1.ObjectMeta{Namespace: s.Namespace, Name: fmt.Sprintf("%s.%x", s.Name, sum[:8])},
		EventTime:           metav1.NowMicro(),
		ReportingController: mcs.FieldManager, ReportingInstance: mcs.FieldManager + "-" + host,
		Action: "Read", Reason: "Misconfigured", Type: corev1.EventTypeWarning, Note: shortNote(note.String()),
		Regarding: corev1.ObjectReference{
			APIVersion: "v1", Kind: "Service", Namespace: s.Namespace, Name: s.Name, UID: s.UID, FieldPath: p.Field,
		},
	}
}
