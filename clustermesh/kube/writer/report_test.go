package writer

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/rest"

	"strait.io/strait/clustermesh"
	"strait.io/strait/clustermesh/kube/write"
	"strait.io/strait/clustermesh/mcs"
	"strait.io/strait/clustermesh/written"
	"strait.io/strait/internal/problem"
	"strait.io/strait/internal/testutil"
)

// A Service has no conditions: what is wrong with it becomes Events, one for each thing, no matter which writer
// leads.
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
	t.Logf("reported within %v", time.Since(begin))

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

// Exports' owners hear of what their conditions do not say, and those of other API groups' exports
// of everything: on the very object.
func TestProblemsOfExportsBecomeEvents(t *testing.T) {
	b := newBench(t)
	b.export()
	alias := b.alias("net.gke.io", "v1")
	export, err := b.mcs.MulticlusterV1beta1().ServiceExports(b.ns).Get(t.Context(), "serve", metav1.GetOptions{})
	must(t, err)
	w, _ := b.start(b.account("list", "watch", "create", "patch", "delete"))
	v := b.view()
	v.Problems = map[clustermesh.ServiceName][]clustermesh.Problem{b.name: {
		b.name.Ref(written.ServiceExport).Problem(clustermesh.Problem{Code: problem.ValueInvalid, Field: "spec.exportedLabels", Message: "service.strait.io/no", Try: "write another"}),
		b.name.Ref("ServiceExport.net.gke.io").Problem(clustermesh.Problem{Code: problem.ValueInvalid, Message: "service.strait.io/: odd", Try: "write another"}),
		b.name.Ref(written.OldExport).Problem(clustermesh.Problem{Message: "its kind is not there"}),
	}}
	w.Submit(v)
	b.notesOn("ServiceExport", export.UID, "service.strait.io/no")
	b.notesOn("ServiceExport", alias.GetUID(), "odd")
	b.rests(w, 0)
	b.calm(w)
}

// A user's import of the old group is in a barred namespace. Its kind has no conditions, so an
// Event has it.
func TestProblemOfAnOldImportBecomesAnEvent(t *testing.T) {
	b := newBench(t)
	b.foreignCRDs(mcs.OldGroup, "v1alpha1")
	b.create(kepImport)
	w, _ := b.start(b.account("list", "watch", "create", "patch", "delete"))
	v := b.empty()
	v.Config.Barred = clustermesh.Barred{b.ns}
	v.Problems = map[clustermesh.ServiceName][]clustermesh.Problem{b.name: {
		b.name.Ref(written.OldImport).Problem(clustermesh.Problem{Code: problem.ValueInvalid, Message: "service.strait.io/: barred", Try: "write another"}),
	}}
	w.Submit(v)
	i, err := b.in(mcs.OldGroup, "v1alpha1", "serviceimports").Get(t.Context(), "serve", metav1.GetOptions{})
	must(t, err)
	b.notesOn("ServiceImport", i.GetUID(), "barred")
	b.rests(w, 0)
	b.calm(w)
}

// An Event that is refused is a line in the log and nothing more: the others are made, and the
// object is read once for all.
func TestEventsThatAreRefused(t *testing.T) {
	var log heard
	reads, made := 0, []string{}
	report := newReporter(answered(t, log.warnings, func(r *http.Request, body string) int {
		switch {
		case r.Method == http.MethodGet:
			reads++
		case strings.Contains(body, "sometimes"):
			return http.StatusForbidden
		case strings.Contains(body, "maybe"):
			return http.StatusBadRequest
		default:
			made = append(made, r.URL.Path)
		}
		return http.StatusOK
	}))
	b := &bench{ns: "team", name: name("serve")}
	report.Submit(b.odd([]string{"sometimes", "maybe", "often", "never"}))
	for range 2 {
		must(t, report.problems(t.Context(), b.name))
	}
	if text := log.String(); strings.Count(text, "event refused") != 2 || !strings.Contains(text, "sometimes") || !strings.Contains(text, "maybe") {
		t.Errorf("logged: %s", text)
	}
	if path := "/apis/events.k8s.io/v1/namespaces/team/events"; !slices.Equal(made, []string{path, path}) {
		t.Errorf("made: %v", made)
	}
	if reads != 1 {
		t.Errorf("the Service was read %d times", reads)
	}
}

// An Event that cannot be made for a while is made later, and the log has the reason.
func TestEventsThatFailForAWhile(t *testing.T) {
	var log heard
	ctx, cancel := context.WithTimeout(t.Context(), 10*time.Second)
	tries := 0
	term := answered(t, log.all, func(r *http.Request, _ string) int {
		if r.Method != http.MethodPost {
			return http.StatusOK
		}
		if tries++; tries < 3 {
			return http.StatusServiceUnavailable
		}
		cancel()
		return http.StatusOK
	})
	b := &bench{ns: "team", name: name("serve")}
	v := b.odd([]string{"often"})
	v.Imports, v.Exports = nil, nil
	term.Submit(v)
	term.queue.Add(b.name)
	go func() {
		<-ctx.Done()
		term.queue.ShutDown()
	}()
	term.work(ctx, newReporter(term))
	if text := log.String(); tries != 3 || strings.Count(text, "report Service team/serve") != 2 {
		t.Errorf("%d tries; logged: %s", tries, text)
	}
}

// answered is a term whose requests are answered with a status, and where that is no error with a
// Service. It is for what asks one thing at a time.
func answered(t *testing.T, log func(*Config), answer func(r *http.Request, body string) int) *term {
	t.Helper()
	c := Config{Config: write.Config{REST: &rest.Config{Host: "http://api.invalid", Transport: roundTrip(func(r *http.Request) (*http.Response, error) {
		var body []byte
		if r.Body != nil {
			body, _ = io.ReadAll(r.Body)
		}
		code, text := answer(r, string(body)), `{"kind":"Service","apiVersion":"v1","metadata":{"namespace":"team","name":"serve","uid":"1"}}`
		if r.Method == http.MethodPost {
			text = `{"kind":"Event","apiVersion":"events.k8s.io/v1"}`
		}
		if code != http.StatusOK {
			reason := strings.ReplaceAll(http.StatusText(code), " ", "")
			if code == http.StatusConflict && r.Method == http.MethodPost {
				reason = string(metav1.StatusReasonAlreadyExists)
			}
			text = fmt.Sprintf(`{"kind":"Status","apiVersion":"v1","status":"Failure","reason":%q,"code":%d}`, reason, code)
		}
		return &http.Response{StatusCode: code, Request: r, Header: http.Header{"Content-Type": {"application/json"}}, Body: io.NopCloser(strings.NewReader(text))}, nil
	})}}}
	log(&c)
	out, err := newTerm(open(t, c), mcs.API{})
	must(t, err)
	return out
}

type roundTrip func(*http.Request) (*http.Response, error)

func (f roundTrip) RoundTrip(r *http.Request) (*http.Response, error) { return f(r) }

// alias makes an export of another API group, whose CRD it installs.
func (b *bench) alias(group, version string) *unstructured.Unstructured {
	b.t.Helper()
	client := dynamic.NewForConfigOrDie(b.rest)
	crd := &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition", "metadata": map[string]any{"name": "serviceexports." + group},
		"spec": map[string]any{"group": group, "scope": "Namespaced", "names": map[string]any{"plural": "serviceexports", "singular": "serviceexport", "kind": "ServiceExport"},
			"versions": []any{map[string]any{"name": version, "served": true, "storage": true, "schema": map[string]any{"openAPIV3Schema": map[string]any{"type": "object"}}}}},
	}}
	crds := client.Resource(schema.GroupVersionResource{Group: "apiextensions.k8s.io", Version: "v1", Resource: "customresourcedefinitions"})
	_, err := crds.Create(b.t.Context(), crd, metav1.CreateOptions{})
	must(b.t, err)
	b.t.Cleanup(func() { must(b.t, crds.Delete(context.Background(), crd.GetName(), metav1.DeleteOptions{})) })
	var out *unstructured.Unstructured
	testutil.Eventually(b.t, 10*time.Second, func() (err error) {
		out, err = client.Resource(schema.GroupVersionResource{Group: group, Version: version, Resource: "serviceexports"}).Namespace(b.ns).Create(b.t.Context(), &unstructured.Unstructured{Object: map[string]any{
			"apiVersion": group + "/" + version, "kind": "ServiceExport", "metadata": map[string]any{"name": "serve"},
		}}, metav1.CreateOptions{})
		return err
	})
	return out
}

// odd is a view in which the Service's annotations have these values.
func (b *bench) odd(values []string, change ...func(*mcs.Import)) mcs.View {
	v := b.view(change...)
	v.Problems = map[clustermesh.ServiceName][]clustermesh.Problem{}
	for n, value := range values {
		v.Problems[b.name] = append(v.Problems[b.name], b.name.Ref("Service").Problem(clustermesh.Problem{
			Code:  problem.ValueInvalid,
			Field: fmt.Sprintf("metadata.annotations[service.strait.io/%d]", n), Message: value, Try: "write another",
		}))
	}
	return v
}

// notes waits until the Events of a Service say just this.
func (b *bench) notes(s *corev1.Service, want ...string) {
	b.t.Helper()
	b.notesOn("Service", s.UID, want...)
}

// notesOn waits until the Events of our Problems on an object say just this.
func (b *bench) notesOn(kind string, uid types.UID, want ...string) {
	b.t.Helper()
	slices.Sort(want)
	testutil.Eventually(b.t, 10*time.Second, func() error {
		// As kubectl describe asks.
		all, err := b.core.CoreV1().Events(b.ns).List(b.t.Context(), metav1.ListOptions{FieldSelector: "involvedObject.kind=" + kind + ",involvedObject.uid=" + string(uid)})
		must(b.t, err)
		var got []string
		for _, e := range all.Items {
			if e.Reason != "Misconfigured" {
				continue // of a condition
			}
			if e.Type != corev1.EventTypeWarning || !strings.HasPrefix(e.Message, "STR1201: ") || !strings.Contains(e.Message, "service.strait.io/") || !strings.HasSuffix(e.Message, "write another") {
				return fmt.Errorf("event %+v", e)
			}
			_, text, _ := strings.Cut(strings.TrimPrefix(e.Message, "STR1201: "), ": ")
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
