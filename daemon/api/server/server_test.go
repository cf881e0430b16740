package server

import (
	"encoding/json"
	"fmt"
	"io"
	"math"
	"net"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"net/url"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"strait.io/strait/daemon/api"
	"strait.io/strait/daemon/api/client"
	"strait.io/strait/daemon/api/fake"
)

func TestClientGetsWhatTheViewHas(t *testing.T) {
	v := fake.Sample()
	s := New(Config{Socket: socketIn(shortDir(t))}, fake.NewSource(v))
	start(t, s)
	c, ctx := client.OnSocket(s.cfg.Socket), t.Context()

	status, err := c.Status(ctx)
	if want := api.NewStatusAnswer(v.Status).Status; err != nil || !reflect.DeepEqual(*status, want) {
		t.Errorf("Status: %v\n got %+v\nwant %+v", err, status, want)
	}
	services, err := c.Services(ctx)
	if err != nil || len(services.Items) != 2 || services.Items[0].Name != "default/cart" ||
		!reflect.DeepEqual(services.Items[1], v.Services[0]) {
		t.Errorf("Services: %v\n%+v", err, services)
	}
	nodes, err := c.Nodes(ctx)
	if err != nil || len(nodes.Items) != 4 || nodes.Items[2].Cluster+nodes.Items[2].Name != "bn2" {
		t.Errorf("Nodes: %v\n%+v", err, nodes)
	}
	all, err := c.Tunnels(ctx, "")
	if err != nil || !reflect.DeepEqual(all.Items, v.Tunnels) {
		t.Errorf("Tunnels: %v\n%+v", err, all)
	}
	one, err := c.Tunnels(ctx, "b/n1")
	if err != nil || !reflect.DeepEqual(one.Items, v.Tunnels[1:]) {
		t.Errorf("Tunnels of b/n1: %v\n%+v", err, one)
	}
	backends, err := c.Backends(ctx, "default/serve")
	if err != nil || len(backends.Items) != 1 || backends.Items[0].Addr.String() != "10.0.0.1:80" {
		t.Errorf("Backends: %v\n%+v", err, backends)
	}
	explanation, err := c.Explain(ctx, "default/serve", "")
	if err != nil || !reflect.DeepEqual(explanation.Service, v.Services[0]) || explanation.SeenFrom != v.Status.Viewpoint() {
		t.Errorf("Explain: %v\n%+v", err, explanation)
	}
	if v.Services[0].Name != "default/serve" {
		t.Error("answering reordered the view, which is immutable")
	}
}

func TestHandlerErrorsAreAnswers(t *testing.T) {
	broken := fake.Sample()
	broken.Services[0].Frontends[0].Endpoints[0].Share = math.NaN()
	for _, c := range []struct {
		name, method, path string
		view               *fake.View
		status             int
		message            string
	}{
		{"no plan", "GET", "/v1/status", nil, 503, "has no plan yet"},
		{"unknown service", "GET", "/v1/explain?service=default/srve", fake.Sample(), 404, "did you mean default/serve?"},
		{"service missing", "GET", "/v1/explain", fake.Sample(), 400, "?service=NAMESPACE/NAME"},
		{"service without namespace", "GET", "/v1/explain?service=serve", fake.Sample(), 400, "?service=NAMESPACE/NAME"},
		{"a mirror", "GET", "/v1/explain?service=shop/far", fake.Sample(), 404, "is a mirror of us-west/shop/cart, us-east/shop/cart by policy stars"},
		{"unknown path", "GET", "/v2/status", fake.Sample(), 404, "/v1/services"},
		{"writing", "POST", "/v1/status", fake.Sample(), 405, "read-only"},
		{"no plan for flows", "GET", "/v1/flows", nil, 503, "has no plan yet"},
		{"no plan for traffic", "GET", "/v1/traffic", nil, 503, "has no plan yet"},
		{"not JSON", "GET", "/v1/services", broken, 500, "encode the answer"},
	} {
		t.Run(c.name, func(t *testing.T) {
			s := New(Config{}, fake.NewSource(c.view))
			w := httptest.NewRecorder()
			s.localHandler().ServeHTTP(w, httptest.NewRequest(c.method, c.path, nil))
			var a api.ErrorAnswer
			if err := json.Unmarshal(w.Body.Bytes(), &a); err != nil {
				t.Fatal(err)
			}
			if w.Code != c.status || a.APIVersion != api.APIVersion || a.Kind != api.KindError || !strings.Contains(a.Message+a.Try, c.message) {
				t.Errorf("status %d, %+v", w.Code, a)
			}
		})
	}
}

// FuzzServiceQuery: whatever the query is, the answer is JSON of our API and never a panic.
func FuzzServiceQuery(f *testing.F) {
	for _, s := range []string{"default/serve", "default/srve", "", "/", "a/b/c", "\x00/\xff", strings.Repeat("x/", 300)} {
		f.Add(s)
	}
	s := New(Config{}, fake.NewSource(fake.Sample()))
	f.Fuzz(func(t *testing.T, service string) {
		for _, path := range []string{"/v1/explain", "/v1/backends"} {
			w := httptest.NewRecorder()
			r := httptest.NewRequest("GET", path, nil)
			r.URL.RawQuery = "service=" + url.QueryEscape(service)
			s.localHandler().ServeHTTP(w, r)
			var m api.Meta
			if err := json.Unmarshal(w.Body.Bytes(), &m); err != nil || m.APIVersion != api.APIVersion {
				t.Errorf("%s %q: %v in %s", path, service, err, w.Body)
			}
		}
	})
}

func get(t *testing.T, at netip.AddrPort, path string) (int, string) {
	t.Helper()
	r, err := http.Get("http://" + at.String() + path)
	if err != nil {
		t.Fatal(err)
	}
	defer r.Body.Close()
	body, err := io.ReadAll(r.Body)
	if err != nil {
		t.Fatal(err)
	}
	return r.StatusCode, string(body)
}

func TestReadyzFollowsTheView(t *testing.T) {
	src := fake.NewSource(nil)
	s := New(Config{Socket: socketIn(shortDir(t)), Metrics: netip.MustParseAddrPort("127.0.0.1:0"),
		Scrape: http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { fmt.Fprint(w, "strait_build_info{} 1") })}, src)
	start(t, s)
	waitFor(t, "metrics", func() bool { return s.MetricsAddr().IsValid() })
	waiting, ready := fake.Sample(), fake.Sample()
	waiting.Status.Ready, waiting.Status.Waiting = false, []string{"maps", "manifests"}
	for _, step := range []struct {
		view    *fake.View
		status  int
		message string
	}{
		{nil, 503, "no plan yet"}, {waiting, 503, "waiting for maps, manifests"}, {ready, 200, "ok"}, {waiting, 503, "not ready"},
	} {
		src.Store(step.view)
		if status, body := get(t, s.MetricsAddr(), "/readyz"); status != step.status || !strings.Contains(body, step.message) {
			t.Errorf("readyz: %d %q, want %d %q", status, body, step.status, step.message)
		}
		if status, body := get(t, s.MetricsAddr(), "/healthz"); status != 200 || body != "ok\n" {
			t.Errorf("healthz: %d %q", status, body)
		}
		if status, body := get(t, s.MetricsAddr(), "/metrics"); status != 200 || !strings.Contains(body, "strait_build_info{}") {
			t.Errorf("metrics: %d %q", status, body)
		}
	}
	if status, _ := get(t, s.MetricsAddr(), "/v1/status"); status != 404 {
		t.Errorf("TCP answers /v1/status with %d: topology is for the socket only", status)
	}
}

func TestMetricsPortInUse(t *testing.T) {
	taken, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer taken.Close()
	at := taken.Addr().(*net.TCPAddr).AddrPort()
	v := fake.Sample()
	s := New(Config{Socket: socketIn(shortDir(t)), Metrics: at}, fake.NewSource(v))
	s.retry = 20 * time.Millisecond
	start(t, s)
	waitFor(t, "the problem", func() bool { return len(s.Problems()) == 1 })
	p := s.Problems()[0]
	if p.Warning || p.Field != "metrics.listen" || !strings.Contains(p.Message, at.String()+" is in use") || !strings.Contains(p.Try, "ss -ltnp") {
		t.Errorf("%+v", p)
	}
	status, err := client.OnSocket(s.cfg.Socket).Status(t.Context())
	if err != nil || !slices.Contains(status.Problems, p) || len(status.Problems) != 3 {
		t.Errorf("status: %v, %+v", err, status)
	}
	if len(v.Status.Problems) != 2 {
		t.Error("the view was changed")
	}
	taken.Close()
	waitFor(t, "the port", func() bool { return s.MetricsAddr() == at && s.Problems() == nil })
	if code, _ := get(t, at, "/healthz"); code != 200 {
		t.Errorf("healthz: %d", code)
	}
}
