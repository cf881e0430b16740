package monitoring

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"sigs.k8s.io/yaml"
)

// server is a Prometheus on the observer's loopback address.
type server struct {
	world
	began time.Time
}

const address = "http://127.0.0.1:9090"

// scrape starts a Prometheus that asks all daemons each second. Alerts fire after a time instead of
// their own: the rest of the rules is as the chart has it.
func (w world) scrape(after string) server {
	w.Helper()
	type target struct {
		Targets []string          `json:"targets"`
		Labels  map[string]string `json:"labels"`
	}
	var targets []target
	for _, d := range w.daemons() {
		targets = append(targets, target{[]string{d.Metrics.Listen}, map[string]string{"cluster": d.Cluster, "instance": d.Node}})
	}
	w.write("rules.yaml", w.hurried(after))
	w.write("prometheus.yaml", map[string]any{
		"global":         map[string]any{"scrape_interval": "1s", "scrape_timeout": "1s", "evaluation_interval": "1s"},
		"rule_files":     []string{"rules.yaml"},
		"scrape_configs": []any{map[string]any{"job_name": "strait", "static_configs": targets}},
	})
	w.start(observer, "prometheus", "--config.file="+filepath.Join(w.dir, "prometheus.yaml"), "--storage.tsdb.path="+filepath.Join(w.dir, "tsdb"),
		"--web.listen-address="+strings.TrimPrefix(address, "http://"), "--log.level=warn")
	return server{w, time.Now()}
}

// hurried are the alerts of the chart, with another time.
func (w world) hurried(after string) map[string]any {
	w.Helper()
	text, err := os.ReadFile("../../install/chart/strait/monitoring/alerts.yaml")
	if err != nil {
		w.Fatal(err)
	}
	var rules map[string]any
	if err := yaml.Unmarshal(text, &rules); err != nil {
		w.Fatal(err)
	}
	for _, group := range rules["groups"].([]any) {
		for _, rule := range group.(map[string]any)["rules"].([]any) {
			rule.(map[string]any)["for"] = after
		}
	}
	return rules
}

func (w world) write(name string, v any) {
	w.Helper()
	text, err := yaml.Marshal(v)
	if err == nil {
		err = os.WriteFile(filepath.Join(w.dir, name), text, 0o600)
	}
	if err != nil {
		w.Fatal(err)
	}
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
	answer := struct {
		Status, Error string
		Data          any
	}{Data: into}
	if err := json.Unmarshal(out, &answer); err != nil {
		return fmt.Errorf("%s: %w\n%s", path, err, out)
	}
	if answer.Status != "success" {
		return fmt.Errorf("%s: %s", path, answer.Error)
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

// alert is one that fires or waits.
type alert struct {
	Labels, Annotations map[string]string
	State               string
}

// firing are the alerts that fire.
func (s server) firing() (out []alert, err error) {
	var data struct{ Alerts []alert }
	if err := s.get("/api/v1/alerts", &data); err != nil {
		return nil, err
	}
	for _, a := range data.Alerts {
		if a.State == "firing" {
			out = append(out, a)
		}
	}
	return out, nil
}
