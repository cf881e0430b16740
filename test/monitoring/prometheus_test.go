package monitoring

import (
	"fmt"
	"strconv"
	"strings"
	"time"

	"strait.io/strait/test/alerts"
)

// server is a Prometheus on the observer's loopback address.
type server struct {
	world
	began time.Time
}

const address = "http://127.0.0.1:9090"

// scrape starts a Prometheus that asks all daemons each second. Alerts fire after a time instead of
// their own: the rest of the rules is as the chart has it.
func (w world) scrape(after time.Duration) server {
	w.Helper()
	var targets []alerts.Target
	for _, d := range w.daemons() {
		targets = append(targets, alerts.Target{Address: d.Metrics.Listen, Cluster: d.Cluster, Instance: d.Node})
	}
	if err := alerts.Write(w.dir, "../..", after, targets); err != nil {
		w.Fatal(err)
	}
	w.start(observer, alerts.Command(w.dir, strings.TrimPrefix(address, "http://"))...)
	return server{w, time.Now()}
}

// sample is one series of an answer, with its values over time.
type sample struct {
	Metric map[string]string
	Values [][2]any
}

// get asks the server's API, with parameters NAME=VALUE.
func (s server) get(path string, into any, parameters ...string) error {
	args := []string{"demo", "exec", observer, "--", "curl", "-sS", "--max-time", "10", "--get"}
	for _, p := range parameters {
		args = append(args, "--data-urlencode", p)
	}
	out, err := s.command(append(args, address+path)...).CombinedOutput()
	if err != nil {
		return fmt.Errorf("%s: %w\n%s", path, err, out)
	}
	if err := alerts.Decode(out, into); err != nil {
		return fmt.Errorf("%s: %w\n%s", path, err, out)
	}
	return nil
}

// since asks a query for each second since the server began, and returns the series that have a number.
func (s server) since(query string) ([]sample, error) {
	var data struct{ Result []sample }
	err := s.get("/api/v1/query_range", &data, "query="+query, "start="+s.began.Format(time.RFC3339), "end="+time.Now().Format(time.RFC3339), "step=1")
	return withNumbers(data.Result), err
}

func withNumbers(all []sample) (out []sample) {
	for _, x := range all {
		for _, v := range x.Values {
			if f, err := strconv.ParseFloat(fmt.Sprint(v[1]), 64); err == nil && f == f {
				out = append(out, x)
				break
			}
		}
	}
	return out
}

// firing are the alerts that fire.
func (s server) firing() ([]alerts.Alert, error) {
	var all alerts.All
	err := s.get("/api/v1/alerts", &all)
	return all.Firing(), err
}
