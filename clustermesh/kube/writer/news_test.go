package writer

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	eventsv1 "k8s.io/api/events/v1"
	"k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/rest"
	"pgregory.net/rapid"
	mcsv1beta1 "sigs.k8s.io/mcs-api/pkg/apis/v1beta1"

	"strait.io/strait/clustermesh"
	"strait.io/strait/clustermesh/kube/write"
	"strait.io/strait/clustermesh/mcs"
)

// counting is an API server with one ServiceExport, team/serve, and a Service of that name. It counts what
// is written: conditions by resource, and Events by the kind of their object.
type counting struct {
	objects  map[string]map[string]any
	statuses map[string][]time.Time
	events   map[string][]time.Time
	version  int
	now      time.Time
}

const ourLabels = `[{"manager":"strait","operation":"Apply","fieldsV1":{"f:metadata":{"f:labels":{"f:app.kubernetes.io/managed-by":{}}}}}]`

func (c *counting) RoundTrip(r *http.Request) (*http.Response, error) {
	var sent []byte
	if r.Body != nil {
		sent, _ = io.ReadAll(r.Body)
	}
	path := strings.Split(r.URL.Path, "/namespaces/team/")[1]
	resource, of, _ := strings.Cut(path, "/")
	var body map[string]any
	if r.Method != http.MethodGet && resource != "events" {
		if err := json.Unmarshal(sent, &body); err != nil {
			return nil, err
		}
	}
	answer := map[string]any{"kind": "Service", "apiVersion": "v1", "metadata": map[string]any{"namespace": "team", "name": "serve", "uid": "service"}}
	switch {
	case r.Method == http.MethodGet:
	case resource == "events":
		e, _, err := scheme.Codecs.UniversalDeserializer().Decode(sent, nil, nil)
		if err != nil {
			return nil, err
		}
		kind := e.(*eventsv1.Event).Regarding.Kind
		c.events[kind] = append(c.events[kind], c.now)
		answer = map[string]any{"kind": "Event", "apiVersion": "events.k8s.io/v1"}
	case strings.HasSuffix(of, "/status"):
		c.statuses[resource] = append(c.statuses[resource], c.now)
		c.objects[resource]["status"] = body["status"]
		answer = c.changed(resource)
	default:
		if was := c.objects[resource]; was != nil {
			body["status"] = was["status"]
		}
		c.objects[resource] = body
		answer = c.changed(resource)
	}
	text, err := json.Marshal(answer)
	return &http.Response{StatusCode: http.StatusOK, Request: r, Header: http.Header{"Content-Type": {"application/json"}}, Body: io.NopCloser(bytes.NewReader(text))}, err
}

func (c *counting) changed(resource string) map[string]any {
	c.version++
	o := c.objects[resource]
	var fields any
	_ = json.Unmarshal([]byte(ourLabels), &fields) // a constant
	m := o["metadata"].(map[string]any)
	m["uid"], m["resourceVersion"], m["generation"], m["managedFields"] = resource, fmt.Sprint(c.version), 1, fields
	return o
}

// A global Service has no condition for how it fares: its Events have that, once for each turn, and one for
// all leaders that find it so from the start.
func TestFares(t *testing.T) {
	s := clustermesh.ServiceName{Namespace: "team", Name: "serve"}
	now := time.Unix(1_800_000_000, 0)
	names, reasons := map[string]bool{}, []string{}
	leader := func() func(healthy int) {
		term := answered(t, func(*Config) {}, func(r *http.Request, body string) int {
			if r.Method != http.MethodPost {
				return http.StatusOK
			}
			o, _, err := scheme.Codecs.UniversalDeserializer().Decode([]byte(body), nil, nil)
			must(t, err)
			e := o.(*eventsv1.Event)
			if names[e.Name] {
				return http.StatusConflict
			}
			names[e.Name] = true
			reasons = append(reasons, e.Type+" "+e.Reason+" of "+e.Regarding.Kind)
			return http.StatusOK
		})
		term.paced(func() time.Time { return now })
		report := newReporter(term)
		return func(healthy int) {
			v := mcs.View{}
			if healthy >= 0 {
				v.Locals = []mcs.Source[mcs.Local]{fares{s, mcs.Local{Expected: 2, Healthy: healthy, Share: 1, Whole: 1}}}
			}
			report.Submit(v)
			report.fares(t.Context(), s)
			now = now.Add(time.Minute)
		}
	}
	is := func(what string, want ...string) {
		t.Helper()
		if !slices.Equal(reasons, want) {
			t.Errorf("%s: Events %q, want %q", what, reasons, want)
		}
		reasons = nil
	}
	const none, well = "Warning NoLocalBackends of Service", "Normal Sufficient of Service"
	look := leader()
	look(2)
	is("well from the start")
	look(0)
	look(0)
	is("none", none)
	look(1)
	look(0)
	is("again, and none", well, none)
	next := leader()
	next(0)
	is("the next leader", none)
	last := leader()
	last(0)
	is("the one after that")
	last(-1)
	is("no global service any more")
	last(2)
	is("one that is well")
}

// fares is how a service fares, which is known already.
type fares struct {
	s clustermesh.ServiceName
	l mcs.Local
}

func (f fares) Name() clustermesh.ServiceName     { return f.s }
func (f fares) Make() mcs.Local                   { return f.l }
func (f fares) Same(o mcs.Source[mcs.Local]) bool { return reflect.DeepEqual(f, o) }

// bounded fails unless there are so many times at once, and then one per interval.
func bounded(rt *rapid.T, what string, times []time.Time, burst int, every time.Duration) {
	for i := range times {
		for j := i; j < len(times); j++ {
			if most := burst + int(times[j].Sub(times[i])/every) + 1; j-i+1 > most {
				rt.Fatalf("%d %s in %s, want at most %d", j-i+1, what, times[j].Sub(times[i]), most)
			}
		}
	}
}

// However a service changes, what is written of how it fares is bounded, for its export and for its
// Service; and the condition is right soon after the last change.
func TestNewsIsBounded(t *testing.T) {
	s := clustermesh.ServiceName{Namespace: "team", Name: "serve"}
	rapid.Check(t, func(rt *rapid.T) {
		c := &counting{objects: map[string]map[string]any{}, statuses: map[string][]time.Time{}, events: map[string][]time.Time{}, version: 1, now: time.Unix(1_800_000_000, 0)}
		c.objects["serviceexports"] = map[string]any{"kind": "ServiceExport", "apiVersion": "multicluster.x-k8s.io/v1beta1", "metadata": map[string]any{"namespace": s.Namespace, "name": s.Name}}
		term, err := newTerm(open(t, Config{Config: write.Config{REST: &rest.Config{Host: "http://api.invalid", Transport: c}}}), mcs.API{})
		must(t, err)
		defer term.queue.ShutDown()
		term.paced(func() time.Time { return c.now })
		export := &mcsv1beta1.ServiceExport{}
		export.Namespace, export.Name, export.UID, export.ResourceVersion, export.Generation = s.Namespace, s.Name, "serviceexports", "1", 1
		term.store.put(export)
		turn := func(l mcs.Local) {
			i := mcs.Import{Import: clustermesh.Import{Service: s, Type: clustermesh.Headless, Exporters: []clustermesh.ClusterName{"c1"}}, Local: &l}
			v := mcs.View{Cluster: "c1", Clusters: map[clustermesh.ClusterName]mcs.Knowledge{"c1": mcs.Current}, Imports: []mcs.Source[mcs.Import]{made{i}}}
			v.Exports = []clustermesh.ExportStatus{{Service: s, Valid: true, Exported: true, Reason: "Valid"}}
			term.Submit(v)
			if err := term.sync(t.Context(), s); err != nil {
				rt.Fatal(err)
			}
		}
		turns := rapid.IntRange(1, 60).Draw(rt, "turns")
		for range turns {
			c.now = c.now.Add(time.Duration(rapid.IntRange(0, 90).Draw(rt, "tenths")) * time.Second / 10)
			expected := rapid.IntRange(0, 3).Draw(rt, "expected")
			turn(mcs.Local{Expected: expected, Healthy: rapid.IntRange(0, expected).Draw(rt, "healthy"), Share: 0.5, Whole: rapid.SampledFrom([]float64{0.5, 1}).Draw(rt, "whole")})
		}
		c.now = c.now.Add(restateEvery)
		turn(mcs.Local{Expected: 7})
		if text := fmt.Sprint(c.objects["serviceexports"]["status"]); !strings.Contains(text, "None of this cluster's 7 endpoints") {
			rt.Fatalf("after %s, its conditions are %s", restateEvery, text)
		}
		// One more: the first status is no change, and one Event is that the Service is exported.
		bounded(rt, "writes of the status", c.statuses["serviceexports"], restateBurst+1, restateEvery)
		bounded(rt, "Events of the export", c.events["ServiceExport"], newsBurst+1, newsEvery)
		bounded(rt, "Events of the Service", c.events["Service"], newsBurst, newsEvery)
		if len(c.events["Service"]) == 0 && turns > 0 {
			rt.Fatal("no Event of the Service, which has no endpoint at the end")
		}
	})
}
