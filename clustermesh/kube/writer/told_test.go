package writer

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"strait.io/strait/clustermesh"
	"strait.io/strait/clustermesh/mcs"
	"strait.io/strait/internal/testutil"
)

// A Service has no conditions: what is wrong with it becomes Events, one for each thing, whoever leads.
func TestProblemsOfAServiceBecomeEvents(t *testing.T) {
	b := newBench(t)
	service, err := b.core.CoreV1().Services(b.ns).Create(t.Context(), &corev1.Service{
		ObjectMeta: metav1.ObjectMeta{Name: "serve"}, Spec: corev1.ServiceSpec{Ports: []corev1.ServicePort{{Port: 80}}},
	}, metav1.CreateOptions{})
	must(t, err)
	w, stop := b.start(b.account("list", "watch", "create", "patch", "delete"))
	both, begin := []string{"sometimes", "maybe"}, time.Now()
	w.Submit(b.odd(both))
	b.notes(service, "sometimes", "maybe")
	t.Logf("told within %v", time.Since(begin))

	// The Service is looked at again for other reasons, and by the next leader.
	w.Submit(b.odd(both, func(i *mcs.Import) { i.Labels = map[string]string{"a": "b"} }))
	b.rests(w, 0)
	stop()
	b.calm(w)
	w, _ = b.start()
	w.Submit(b.odd(both))
	b.rests(w, 0)
	b.notes(service, "sometimes", "maybe")

	w.Submit(b.odd([]string{"often"}))
	b.notes(service, "sometimes", "maybe", "often")
	gone := b.odd([]string{"never"})
	gone.Problems[clustermesh.ServiceName{Namespace: b.ns, Name: "gone"}] = gone.Problems[b.name]
	w.Submit(gone)
	b.notes(service, "sometimes", "maybe", "often", "never")
	b.calm(w)
}

// odd is a view in which the Service's annotations have these values.
func (b *bench) odd(values []string, change ...func(*mcs.Import)) mcs.View {
	v := b.view(change...)
	v.Problems = map[clustermesh.ServiceName][]clustermesh.Problem{}
	for n, value := range values {
		v.Problems[b.name] = append(v.Problems[b.name], clustermesh.Problem{
			Object: "Service " + b.name.String(), Field: fmt.Sprintf("metadata.annotations[service.strait.io/%d]", n), Message: value, Try: "write another",
		})
	}
	return v
}

// notes waits until the Events of a Service say just this.
func (b *bench) notes(s *corev1.Service, want ...string) {
	b.t.Helper()
	slices.Sort(want)
	testutil.Eventually(b.t, 10*time.Second, func() error {
		// As kubectl describe asks.
		all, err := b.core.CoreV1().Events(b.ns).List(b.t.Context(), metav1.ListOptions{FieldSelector: "involvedObject.kind=Service,involvedObject.uid=" + string(s.UID)})
		must(b.t, err)
		var got []string
		for _, e := range all.Items {
			if e.Type != corev1.EventTypeWarning || !strings.Contains(e.Message, "service.strait.io/") || !strings.HasSuffix(e.Message, "write another") {
				return fmt.Errorf("event %+v", e)
			}
			_, text, _ := strings.Cut(e.Message, ": ")
			text, _, _ = strings.Cut(text, ";")
			got = append(got, text)
		}
		slices.Sort(got)
		if !slices.Equal(got, want) {
			return fmt.Errorf("events say %q, want %q", got, want)
		}
		return nil
	})
}
