package monitoring

import (
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"strait.io/strait/internal/testutil"
)

const (
	// wait is how long anything may take on a busy machine.
	wait = 60 * time.Second
	// lost is the cluster that is cut off.
	lost = "us-west"
)

// TestPrometheus: nothing fires while all is well. A cluster that is cut off makes the alerts about
// tunnels and clusters fire, and they end when it is back. Every query of the dashboards and of
// docs/metrics.md then has an answer.
func TestPrometheus(t *testing.T) {
	w := demo(t)
	w.call()
	s := w.scrape(time.Second)
	testutil.Eventually(t, wait, func() error { return s.has(len(w.daemons()), "up == 1") })
	w.stranger()
	time.Sleep(5 * time.Second) // what is wrong at first, and what an alert would need to fire
	testutil.Eventually(t, wait, s.quiet)
	w.stranger() // a rate begins with the second one

	began := time.Now()
	w.cut(lost)
	for _, name := range []string{"StraitTunnelBlocked", "StraitClusterHeld"} {
		testutil.Eventually(t, wait, func() error { return s.fires(name, lost) })
		t.Logf("%s fires %v after the cut", name, time.Since(began).Round(100*time.Millisecond))
	}
	// The daemons report a problem some seconds later; a panel shows them.
	testutil.Eventually(t, wait, func() error { return s.any("strait_problems_by_code") })
	all, err := s.firing()
	if err != nil {
		t.Error(err)
	}
	for _, a := range all {
		for what, text := range a.Annotations {
			if strings.Contains(text, "error") && strings.Contains(text, "template") || strings.Contains(text, "{{") {
				t.Errorf("%s: %s is %q", a.Labels["alertname"], what, text)
			}
		}
	}

	began = time.Now()
	w.heal(lost)
	testutil.Eventually(t, wait, s.quiet)
	t.Logf("the last alert ends %v after the cluster is back", time.Since(began).Round(100*time.Millisecond))
	// A canary comes every 30 s.
	testutil.Eventually(t, wait, func() error {
		got, err := s.since("histogram_quantile(0.5, sum by (le) (rate(strait_propagation_seconds_bucket[5m])))")
		if err == nil && len(got) == 0 {
			err = errors.New("no canary has come")
		}
		return err
	})
	s.dashboards()
	s.page()
}

// call has clients of two clusters call Services all the time.
func (w world) call() {
	w.Helper()
	for _, place := range []string{"us-east-1/client", "eu-central-1/client"} {
		w.start(place, "sh", "-c", `while sleep 0.2; do for s in serve far; do curl -s -o /dev/null --max-time 1 http://$s.default.svc.clusterset.local; done; done`)
	}
}

// stranger uses a gossip port without its key.
func (w world) stranger() {
	w.Helper()
	listen := w.daemons()[0].Metrics.Listen
	port := strings.Replace(listen, ":9964", ":7946", 1)
	w.strait("demo", "exec", observer, "--", "sh", "-c", "curl -s --max-time 2 http://"+port+"; true")
}

// has wants a query to have that many series now.
func (s server) has(want int, query string) error {
	got, err := s.series(query)
	if err == nil && got != want {
		err = fmt.Errorf("%s has %d series, want %d", query, got, want)
	}
	return err
}

// any wants a query to have at least one series now.
func (s server) any(query string) error {
	got, err := s.series(query)
	if err == nil && got == 0 {
		err = fmt.Errorf("%s has no series", query)
	}
	return err
}

// series counts the series that a query has now.
func (s server) series(query string) (int, error) {
	var data struct{ Result []any }
	err := s.get("/api/v1/query", &data, "query="+query)
	return len(data.Result), err
}

// quiet wants no alert to fire.
func (s server) quiet() error {
	all, err := s.firing()
	if err == nil && len(all) > 0 {
		err = fmt.Errorf("%d alerts fire, such as %v: %v", len(all), all[0].Labels, all[0].Annotations)
	}
	return err
}

// fires wants an alert about a cluster to fire, whose summary names it.
func (s server) fires(name, cluster string) error {
	all, err := s.firing()
	if err != nil {
		return err
	}
	for _, a := range all {
		if a.Labels["alertname"] == name && a.Labels["remote_cluster"] == cluster && strings.Contains(a.Annotations["summary"], cluster) {
			return nil
		}
	}
	return fmt.Errorf("%s does not fire for %s; %d others do", name, cluster, len(all))
}

// dashboards asks each query of each panel.
func (s server) dashboards() {
	s.Helper()
	files, err := filepath.Glob("../../install/chart/strait/monitoring/dashboards/*.json")
	if err != nil || len(files) == 0 {
		s.Fatalf("no dashboards: %v", err)
	}
	chosen := strings.NewReplacer("$cluster", ".*", "$instance", ".*", "$__rate_interval", "10s")
	asked := 0
	for _, file := range files {
		text, err := os.ReadFile(file)
		if err != nil {
			s.Fatal(err)
		}
		var d struct {
			Panels []struct {
				Title   string
				Targets []struct{ Expr string }
			}
		}
		if err := json.Unmarshal(text, &d); err != nil {
			s.Fatalf("%s: %v", file, err)
		}
		for _, p := range d.Panels {
			for _, t := range p.Targets {
				asked++
				s.answers(filepath.Base(file)+": "+p.Title, chosen.Replace(t.Expr))
			}
		}
	}
	s.Logf("%d queries of dashboards were asked", asked)
}

// page asks the queries of docs/metrics.md. That about refused connections has no data: the demo
// refuses none.
func (s server) page() {
	s.Helper()
	text, err := os.ReadFile("../../docs/metrics.md")
	if err != nil {
		s.Fatal(err)
	}
	blocks := regexp.MustCompile("(?s)```promql\n(.*?)```").FindAllStringSubmatch(string(text), -1)
	if len(blocks) == 0 {
		s.Error("docs/metrics.md has no queries")
	}
	for _, b := range blocks {
		if !strings.Contains(b[1], "refused") {
			s.answers("docs/metrics.md", b[1])
		} else if _, err := s.since(b[1]); err != nil {
			s.Errorf("docs/metrics.md: %s: %v", b[1], err)
		}
	}
}

// answers wants a query to have had a number at some moment.
func (s server) answers(where, query string) {
	s.Helper()
	got, err := s.since(query)
	if err != nil || len(got) == 0 {
		s.Errorf("%s: %s\nhas no data: %v", where, query, err)
	}
}
