package writer

import (
	"context"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"strait.io/strait/clustermesh"
)

// freeEvery is the time between two checks for names that have become free.
const freeEvery = time.Minute

// freeNames checks, until ctx is done, whether names for derived Services that were taken by
// Services of others have become free. The watches cannot show it, because they see only strait's own
// Services.
func (t *term) freeNames(ctx context.Context) {
	ticker := time.NewTicker(t.freeEvery)
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

// look frees the names that are unused both now and at the last look, so that a user who deletes a
// Service to create it again does not find the name taken. It returns the names that are unused for
// the first time.
func (t *term) look(ctx context.Context, before map[clustermesh.ServiceName]bool) map[clustermesh.ServiceName]bool {
	gone := map[clustermesh.ServiceName]bool{}
	for _, s := range t.store.taken() {
		_, err := t.Core.Services(s.Namespace).Get(ctx, s.Name, metav1.GetOptions{})
		switch {
		case ctx.Err() != nil:
			return nil
		case !apierrors.IsNotFound(err): // it exists, or the API server cannot say
		case before[s]:
			t.store.free(s)
			t.queue.Add(s)
		default:
			gone[s] = true
		}
	}
	return gone
}
