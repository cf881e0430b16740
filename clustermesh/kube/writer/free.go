package writer

import (
	"context"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"strait.io/strait/clustermesh"
)

// freeEvery is the time between two looks whether names are free.
const freeEvery = time.Minute

// freeNames looks, until ctx is done, whether imports may have the names for their derived Services that were somebody else's. The
// watches do not tell: they are of what is strait's.
func (t *term) freeNames(ctx context.Context) {
	every := freeEvery
	if t.config.freeEvery > 0 {
		every = t.config.freeEvery
	}
	ticker := time.NewTicker(every)
	defer ticker.Stop()
	var gone map[clustermesh.ServiceName]bool
	for {
		select {
		case <-ctx.Done():
			return
		case <-ticker.C:
			gone = t.look(ctx, gone)
		}
	}
}

// look frees the names that are nobody's now and were gone at the last look too: who deletes a Service to make it again at once
// is not to find it taken. It returns those that are gone for the first time.
func (t *term) look(ctx context.Context, before map[clustermesh.ServiceName]bool) map[clustermesh.ServiceName]bool {
	gone := map[clustermesh.ServiceName]bool{}
	for _, s := range t.store.taken() {
		_, err := t.core.CoreV1().Services(s.Namespace).Get(ctx, s.Name, metav1.GetOptions{})
		switch {
		case ctx.Err() != nil:
			return nil
		case !apierrors.IsNotFound(err): // it is there, or that cannot be known now
		case before[s]:
			t.store.free(s)
			t.queue.Add(s)
		default:
			gone[s] = true
		}
	}
	return gone
}
