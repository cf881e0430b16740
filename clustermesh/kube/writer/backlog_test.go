package writer

import (
	"fmt"
	"slices"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/util/workqueue"
	mcsv1beta1 "sigs.k8s.io/mcs-api/pkg/apis/v1beta1"

	"strait.io/strait/clustermesh"
	"strait.io/strait/clustermesh/kube/write"
	"strait.io/strait/clustermesh/mcs"
)

func bulk(n int) (out []clustermesh.ServiceName) {
	for i := range n {
		out = append(out, name(fmt.Sprint("service-", i)))
	}
	return out
}

// What changes goes before what came all at once, whether it waits there already or not; the backlog goes on even while
// changes come without end.
func TestChangesGoBeforeTheBacklog(t *testing.T) {
	b := newBacklog()
	q := workqueue.NewTypedWithConfig(workqueue.TypedQueueConfig[clustermesh.ServiceName]{Queue: b})
	all := bulk(1000)
	b.expect(all, time.Now())
	for _, s := range all {
		q.Add(s)
	}
	q.Add(all[900])
	q.Add(name("new"))
	var got []clustermesh.ServiceName
	take := func() {
		s, _ := q.Get()
		got = append(got, s)
		q.Done(s)
	}
	for range 3 {
		take()
	}
	if want := []clustermesh.ServiceName{all[900], name("new"), all[0]}; !slices.Equal(got, want) {
		t.Fatalf("first %v, want %v", got, want)
	}
	got = nil
	for n := range 40 {
		q.Add(name(fmt.Sprint("change-", n)))
		take()
	}
	ours := slices.DeleteFunc(slices.Clone(got), func(s clustermesh.ServiceName) bool { return !slices.Contains(all, s) })
	if !slices.Equal(ours, all[1:11]) {
		t.Errorf("of the backlog came %v", ours)
	}
	if got = nil; q.Len() != 998-10+10 {
		t.Errorf("%d wait", q.Len())
	}
	for q.Len() > 0 {
		take()
	}
	slices.SortFunc(got, clustermesh.ServiceName.Compare)
	if n := len(got); n != 998 || len(slices.Compact(got)) != n {
		t.Errorf("%d came, of which some twice", n)
	}
}

// News of all services at once does not move those that wait to the front; a few are no backlog.
func TestBacklogOfABacklog(t *testing.T) {
	b := newBacklog()
	q := workqueue.NewTypedWithConfig(workqueue.TypedQueueConfig[clustermesh.ServiceName]{Queue: b})
	all := bulk(many + 1)
	for range 2 {
		b.expect(all, time.Now())
		for _, s := range all {
			q.Add(s)
		}
	}
	q.Add(name("new"))
	if s, _ := q.Get(); s != name("new") {
		t.Errorf("first %s", s)
	}
	b.expect(all[:many], time.Now())
	q.Add(all[many-1])
	if s, _ := q.Get(); s != all[many-1] {
		t.Errorf("then %s", s)
	}
}

// Progress counts the services of a backlog, twice what is news twice, and ends with it.
func TestProgressOfABacklog(t *testing.T) {
	b := newBacklog()
	all, start := bulk(200), time.Now()
	b.expect(all[:150], start)
	b.tried(all[0], true)
	b.tried(name("other"), true)
	b.expect(all, start.Add(time.Second))
	if p := b.progress(); p != (Progress{1, 201, start}) {
		t.Errorf("in between %+v", p)
	}
	for _, s := range all {
		b.tried(s, true)
	}
	if p := b.progress(); p != (Progress{}) {
		t.Errorf("in the end %+v", p)
	}
}

// What a leader finds when it begins is a backlog: what changes afterwards goes before it.
func TestWhatIsFoundIsABacklog(t *testing.T) {
	w := open(t, Config{Config: write.Config{REST: &rest.Config{Host: "http://127.0.0.1:1"}}}) // never dialled
	all, err := newTerm(w, mcs.API{})
	must(t, err)
	defer all.queue.ShutDown()
	exports := all.watches[slices.IndexFunc(all.watches, func(w *watch) bool { return w.kind == "serviceexports" })]
	for n, s := range bulk(200) {
		exports.put(&mcsv1beta1.ServiceExport{ObjectMeta: metav1.ObjectMeta{
			Namespace: s.Namespace, Name: s.Name, UID: types.UID(fmt.Sprint(n)), ResourceVersion: "5",
		}})
	}
	w.Submit(mcs.View{Cluster: "c1", Clusters: map[clustermesh.ClusterName]mcs.Knowledge{"c1": mcs.Current}})
	all.begin()
	all.news([]clustermesh.ServiceName{name("service-77"), name("new")})
	if n := all.queue.Len(); n != 201 {
		t.Errorf("%d services wait, want 201", n)
	}
	for _, want := range []clustermesh.ServiceName{name("service-77"), name("new")} {
		if s, _ := all.queue.Get(); s != want {
			t.Errorf("%s is written before %s", s, want)
		}
	}
}

// Unwritten is what waits, what is in hand, and what could not be written.
func TestUnwritten(t *testing.T) {
	b := newBacklog()
	q := workqueue.NewTypedWithConfig(workqueue.TypedQueueConfig[clustermesh.ServiceName]{Queue: b})
	want := func(when string, n int) {
		t.Helper()
		if got := b.unfinished(); got != n {
			t.Errorf("%s: %d are unwritten, want %d", when, got, n)
		}
	}
	want("at first", 0)
	q.Add(name("a"))
	q.Add(name("b"))
	want("waiting", 2)
	a, _ := q.Get()
	want("in hand", 2)
	b.tried(a, false)
	q.Done(a)
	want("one could not be written", 2)
	q.Add(a)
	other, _ := q.Get()
	q.Add(other) // news while it is in hand
	b.tried(other, true)
	q.Done(other)
	want("one is news again", 2)
	for q.Len() > 0 {
		s, _ := q.Get()
		b.tried(s, true)
		q.Done(s)
	}
	want("in the end", 0)
}

// TestUntriedStaysInTheBacklog: what could not be tried waits behind changes, as before, and is not done.
func TestUntriedStaysInTheBacklog(t *testing.T) {
	b, names := newBacklog(), bulk(2*many)
	b.expect(names, time.Now())
	for _, s := range names {
		b.Push(s)
	}
	s := b.Pop()
	b.untried(s)
	b.Push(s)
	if p := b.progress(); p.Done != 0 || p.Total != len(names) || !b.among(s) || len(b.changes) > 0 || b.Len() != len(names) {
		t.Errorf("progress %+v, %d changes, %d wait", p, len(b.changes), b.Len())
	}
}
