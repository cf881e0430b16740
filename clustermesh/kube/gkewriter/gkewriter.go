// Package gkewriter carries out MultiClusterServices and MultiClusterIngresses of networking.gke.io
// in a cluster's API server while this daemon leads the cluster.
//
// Inputs are these objects; outputs are headless Services, Ingresses, statuses and Problems. It is
// a shell around client-go and decides nothing: package gke does, and package write writes. It must
// not know gossip or the kernel.
package gkewriter

import (
	"context"
	"errors"
	"fmt"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"strait.io/strait/clustermesh"
	"strait.io/strait/clustermesh/gke"
	"strait.io/strait/clustermesh/kube/write"
	"strait.io/strait/clustermesh/object"
	"strait.io/strait/clustermesh/written"
)

// readWithin bounds the wait for an API server that does not answer.
const readWithin = 30 * time.Second

// Writer writes what one cluster's objects of networking.gke.io ask for. Make it with New; Run it
// for as long as the daemon leads.
type Writer = write.Passes[gke.View]

// New makes a Writer. It opens no connection until Run.
func New(e *write.Engine) *Writer {
	part := e.Part(written.GKE)
	return write.NewPasses[gke.View](part, &work{Part: part})
}

// work implements write.Work. Run owns it.
type work struct {
	*write.Part
	// looked is set if nothing was left of another cluster's objects when the term began.
	looked bool
	// statuses are those that were written, by the UID of their object.
	statuses map[string]gke.Status
	have     gke.Have
	// failed has the errors of the current pass, by the object of the write.
	failed   map[string]string
	problems []clustermesh.Problem
}

// Needed implements write.Work. Without objects of networking.gke.io, it looks once whether something
// is left: what was made for objects that are gone goes with them, unless they were another cluster's.
func (w *work) Needed(ctx context.Context, view func() gke.View) bool {
	if v := view(); len(v.Services)+len(v.Ingresses) > 0 {
		return true
	}
	if w.looked {
		return false
	}
	left, err := w.leftover(ctx)
	w.looked = err == nil
	return left
}

// leftover reports whether there is something that was made for another cluster's object.
func (w *work) leftover(ctx context.Context) (bool, error) {
	ctx, cancel := context.WithTimeout(ctx, readWithin)
	defer cancel()
	one := metav1.ListOptions{LabelSelector: object.LabelManagedBy + "=" + object.ManagedBy + "," + object.LabelConfigCluster, Limit: 1}
	services, err := w.Core.Services("").List(ctx, one)
	if err != nil || len(services.Items) > 0 {
		return err == nil, err
	}
	ingresses, err := w.Core.Ingresses("").List(ctx, one)
	return err == nil && len(ingresses.Items) > 0, err
}

// Decide implements write.Work.
func (w *work) Decide(v gke.View, there []metav1.Object, _ time.Time) []written.Op {
	w.have, w.failed, w.problems = gke.HaveOf(there), map[string]string{}, nil
	return gke.Diff(v, w.have)
}

// Wrote implements write.Work.
func (w *work) Wrote(ctx context.Context, o written.Op, err error) {
	if o.Verb == written.Create && apierrors.IsAlreadyExists(err) {
		err = w.other(ctx, o)
	}
	if problems := write.Refused(o.String(), err); len(problems) > 0 && ctx.Err() == nil {
		w.failed[o.Target()] = err.Error()
		w.problems = append(w.problems, problems...)
	}
}

// other returns an error if the object that has the name of one to create is not strait's. If it
// is, the watch has only not shown it yet.
func (w *work) other(ctx context.Context, o written.Op) error {
	ctx, cancel := context.WithTimeout(ctx, readWithin)
	defer cancel()
	row, _ := written.Kind(o.Kind) // or it would not have been sent
	there, err := w.Dynamic.Resource(row.Resource).Namespace(o.Object.GetNamespace()).Get(ctx, o.Object.GetName(), metav1.GetOptions{})
	if err == nil && !gke.Ours(there.GetLabels()) {
		err = fmt.Errorf("%s; rename or delete it", gke.Taken(o))
	}
	return err
}

// Done implements write.Work.
func (w *work) Done(ctx context.Context, v gke.View) []clustermesh.Problem {
	for _, s := range gke.Statuses(v, w.have, w.failed, time.Now()) {
		err := w.writeStatus(ctx, s)
		if ctx.Err() != nil || errors.Is(err, write.ErrStopped) {
			break
		}
		w.problems = append(w.problems, write.Refused("patch status of "+object.Name(s.Kind, s.Namespace, s.Name), err)...)
	}
	return w.problems
}

// Forget implements write.Work.
func (w *work) Forget() { *w = work{Part: w.Part} }
