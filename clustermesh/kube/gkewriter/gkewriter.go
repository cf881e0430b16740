// Package gkewriter carries out MultiClusterServices and MultiClusterIngresses of networking.gke.io
// in a cluster's API server while this daemon leads the cluster.
//
// Inputs are these objects; outputs are headless Services, Ingresses, statuses and Problems. It is
// a shell around client-go and decides nothing: package gke does. It must not know gossip or the
// kernel.
package gkewriter

import (
	"context"
	"fmt"
	"log/slog"
	"sync"
	"time"

	"github.com/go-logr/logr"
	networkingv1 "k8s.io/api/networking/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/informers"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/cache"
	"k8s.io/klog/v2"

	"strait.io/strait/clustermesh"
	"strait.io/strait/clustermesh/gke"
	"strait.io/strait/clustermesh/kube/mirrorer"
	"strait.io/strait/clustermesh/object"
	"strait.io/strait/clustermesh/written"
	"strait.io/strait/internal/notify"
	"strait.io/strait/internal/problem"
)

const (
	// manager is the field manager of what this package writes.
	manager = "strait"
	// quiet and patience gather changes that come together.
	quiet, patience = 50 * time.Millisecond, time.Second
	// again is how often a pass is done although nothing changed: what failed is tried again.
	again = 15 * time.Second
	// writeWithin bounds the wait for an API server that does not answer.
	writeWithin = 30 * time.Second
)

// Config says where to write.
type Config struct {
	REST *rest.Config
	// Leading is called right before each write; nothing is written while it returns false.
	Leading func() bool
	Log     *slog.Logger
}

// Writer writes what one cluster's objects of networking.gke.io ask for. Make it with New; Run it
// for as long as the daemon leads.
type Writer struct {
	client  kubernetes.Interface
	dynamic dynamic.Interface
	leading func() bool
	log     *slog.Logger
	changed notify.Signal
	// said are the statuses that were written, by the UID of their object; owned by Run.
	said map[string]gke.ToSay

	mu       sync.Mutex
	view     *gke.View // nil until one was submitted
	problems []clustermesh.Problem
}

// New makes a Writer. It opens no connection until Run.
func New(c Config) (*Writer, error) {
	client, err := kubernetes.NewForConfig(c.REST)
	if err != nil {
		return nil, err
	}
	statuses, err := dynamic.NewForConfig(c.REST)
	if err != nil {
		return nil, err
	}
	return &Writer{client: client, dynamic: statuses, leading: c.Leading, log: c.Log, changed: notify.New()}, nil
}

// Submit says what is known now.
func (w *Writer) Submit(v gke.View) {
	w.mu.Lock()
	w.view = &v
	w.mu.Unlock()
	w.changed.Poke()
}

// Problems are those of the last pass.
func (w *Writer) Problems() []clustermesh.Problem {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.problems
}

// submitted returns the latest view, and whether there is one.
func (w *Writer) submitted() (gke.View, bool) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.view == nil {
		return gke.View{}, false
	}
	return *w.view, true
}

// Run writes until ctx is done. In a cluster without objects of networking.gke.io, it looks once, and
// reads nothing more: what was made for objects that are gone goes with them, unless they were another
// cluster's.
func (w *Writer) Run(ctx context.Context) error {
	ctx = klog.NewContext(ctx, logr.FromSlogHandler(w.log.Handler()))
	defer w.forget()
	for looked := false; ; {
		v, is := w.submitted()
		if is && len(v.Services)+len(v.Ingresses) > 0 {
			break
		}
		if is && !looked {
			left, err := w.leftover(ctx)
			if left {
				break
			}
			looked = err == nil
		}
		if !notify.Await(ctx, w.changed, again, quiet, patience) {
			return nil
		}
	}
	services, ingresses := w.watch(object.LabelMultiService), w.watch(object.LabelMultiIngress)
	poke := cache.ResourceEventHandlerFuncs{
		AddFunc: func(any) { w.changed.Poke() }, UpdateFunc: func(any, any) { w.changed.Poke() }, DeleteFunc: func(any) { w.changed.Poke() },
	}
	read := []cache.SharedIndexInformer{services.Core().V1().Services().Informer(), ingresses.Networking().V1().Ingresses().Informer()}
	for _, i := range read {
		if _, err := i.AddEventHandler(poke); err != nil {
			return err
		}
	}
	for _, f := range []informers.SharedInformerFactory{services, ingresses} {
		f.StartWithContext(ctx)
		defer f.Shutdown()
	}
	if !cache.WaitForCacheSync(ctx.Done(), read[0].HasSynced, read[1].HasSynced) {
		return nil
	}
	for more := true; more; more = notify.Await(ctx, w.changed, again, quiet, patience) {
		v, is := w.submitted()
		var have gke.Have
		var err1, err2 error
		have.Services, err1 = services.Core().V1().Services().Lister().List(labels.Everything())
		have.Ingresses, err2 = ingresses.Networking().V1().Ingresses().Lister().List(labels.Everything())
		if is && ctx.Err() == nil && err1 == nil && err2 == nil {
			w.pass(ctx, v, have)
		}
	}
	return nil
}

// leftover reports whether there is something that was made for another cluster's object.
func (w *Writer) leftover(ctx context.Context) (bool, error) {
	ctx, cancel := context.WithTimeout(ctx, writeWithin)
	defer cancel()
	one := metav1.ListOptions{LabelSelector: object.LabelManagedBy + "=" + object.ManagedBy + "," + object.LabelConfigCluster, Limit: 1}
	services, err := w.client.CoreV1().Services("").List(ctx, one)
	if err != nil || len(services.Items) > 0 {
		return err == nil, err
	}
	ingresses, err := w.client.NetworkingV1().Ingresses("").List(ctx, one)
	return err == nil && len(ingresses.Items) > 0, err
}

// watch returns informers for what strait made and labelled.
func (w *Writer) watch(label string) informers.SharedInformerFactory {
	return informers.NewSharedInformerFactoryWithOptions(w.client, 0, informers.WithTweakListOptions(func(o *metav1.ListOptions) {
		o.LabelSelector = object.LabelManagedBy + "=" + object.ManagedBy + "," + label
	}))
}

// forget drops what is out of date when the next term begins, or is for the next leader to say.
func (w *Writer) forget() {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.view, w.problems, w.said = nil, nil, nil
}

// pass writes what is missing.
func (w *Writer) pass(ctx context.Context, v gke.View, have gke.Have) {
	failed := map[string]string{}
	var problems []clustermesh.Problem
	for _, o := range gke.Diff(v, have) {
		if ctx.Err() != nil || !w.leading() {
			return
		}
		err := w.do(ctx, o)
		if o.Verb == written.Create && apierrors.IsAlreadyExists(err) {
			err = w.other(ctx, o)
		}
		if err == nil || ctx.Err() != nil || mirrorer.Passes(err) {
			continue
		}
		failed[o.Target()] = err.Error()
		problems = append(problems, refused(o.String(), err))
	}
	for _, s := range gke.Statuses(v, have, failed, time.Now()) {
		if ctx.Err() != nil || !w.leading() {
			return
		}
		if err := w.say(ctx, s); err != nil && ctx.Err() == nil && !mirrorer.Passes(err) {
			problems = append(problems, refused("patch status of "+object.Name(s.Kind, s.Namespace, s.Name), err))
		}
	}
	w.mu.Lock()
	w.problems = problems
	w.mu.Unlock()
}

func refused(write string, err error) clustermesh.Problem {
	return clustermesh.Problem{Code: problem.WriteRefused, Object: write, Message: err.Error(), Try: "it is tried again; see what the API server says"}
}

func (w *Writer) do(ctx context.Context, o written.Op) error {
	ctx, cancel := context.WithTimeout(ctx, writeWithin)
	defer cancel()
	if o.Service() != nil {
		return mirrorer.Write(ctx, w.client.CoreV1().Services(o.Service().Namespace), manager, o.Verb, o.Service())
	}
	return mirrorer.Write(ctx, w.client.NetworkingV1().Ingresses(o.Object.GetNamespace()), manager, o.Verb, o.Object.(*networkingv1.Ingress))
}

// other returns an error if the object that has the name of one to create is not strait's. If it
// is, the watch has only not shown it yet.
func (w *Writer) other(ctx context.Context, o written.Op) error {
	ctx, cancel := context.WithTimeout(ctx, writeWithin)
	defer cancel()
	var there metav1.Object
	var err error
	if o.Service() != nil {
		there, err = w.client.CoreV1().Services(o.Service().Namespace).Get(ctx, o.Service().Name, metav1.GetOptions{})
	} else {
		there, err = w.client.NetworkingV1().Ingresses(o.Object.GetNamespace()).Get(ctx, o.Object.GetName(), metav1.GetOptions{})
	}
	if err == nil && !gke.Ours(there.GetLabels()) {
		err = fmt.Errorf("%s; rename or delete it", gke.Taken(o))
	}
	return err
}
