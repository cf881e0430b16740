// Package alerts configures a Prometheus of a test, which evaluates the alerts of the chart, and reads
// its answers.
//
// Inputs are the chart's file and addresses of daemons, outputs are files and the alerts that fire. It
// must not know where Prometheus runs, nor what should fire.
package alerts

import (
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"time"

	"sigs.k8s.io/yaml"
)

// Target is a daemon to scrape.
type Target struct {
	// Address is HOST:PORT; Cluster and Instance become labels.
	Address, Cluster, Instance string
}

// Alert is one that fires or waits.
type Alert struct {
	Labels, Annotations map[string]string
	State               string
}

// Write writes what Prometheus reads into a folder. It scrapes each second, and alerts fire after wait
// instead of their time: the rest of the rules is as the chart in source, the repository, has it.
func Write(dir, source string, wait time.Duration, targets []Target) error {
	rules, err := hurried(source, wait)
	if err != nil {
		return err
	}
	scraped := []any{}
	for _, t := range targets {
		scraped = append(scraped, map[string]any{
			"targets": []string{t.Address}, "labels": map[string]string{"cluster": t.Cluster, "instance": t.Instance},
		})
	}
	return errors.Join(write(filepath.Join(dir, "rules.yaml"), rules), write(filepath.Join(dir, "prometheus.yaml"), map[string]any{
		"global":         map[string]any{"scrape_interval": "1s", "scrape_timeout": "1s", "evaluation_interval": "1s"},
		"rule_files":     []string{"rules.yaml"},
		"scrape_configs": []any{map[string]any{"job_name": "strait", "static_configs": scraped}},
	}))
}

// Command is how to start Prometheus with these files at an address.
func Command(dir, address string) []string {
	return []string{"prometheus", "--config.file=" + filepath.Join(dir, "prometheus.yaml"), "--storage.tsdb.path=" + filepath.Join(dir, "tsdb"),
		"--web.listen-address=" + address, "--log.level=warn"}
}

// hurried are the alerts of the chart, with another time.
func hurried(source string, wait time.Duration) (map[string]any, error) {
	text, err := os.ReadFile(filepath.Join(source, "install/chart/strait/monitoring/alerts.yaml"))
	if err != nil {
		return nil, err
	}
	var rules map[string]any
	if err := yaml.Unmarshal(text, &rules); err != nil {
		return nil, err
	}
	for _, group := range rules["groups"].([]any) {
		for _, rule := range group.(map[string]any)["rules"].([]any) {
			rule.(map[string]any)["for"] = wait.String()
		}
	}
	return rules, nil
}

func write(name string, v any) error {
	text, err := yaml.Marshal(v)
	if err != nil {
		return err
	}
	return os.WriteFile(name, text, 0o600)
}

// Decode reads what an answer of Prometheus' API has.
func Decode(text []byte, into any) error {
	answer := struct {
		Status, Error string
		Data          any
	}{Data: into}
	if err := json.Unmarshal(text, &answer); err != nil {
		return err
	}
	if answer.Status != "success" {
		return fmt.Errorf("the answer of Prometheus is %s", answer.Error)
	}
	return nil
}

// All is what /api/v1/alerts has.
type All struct{ Alerts []Alert }

// Firing are the alerts that fire.
func (a All) Firing() (out []Alert) {
	for _, x := range a.Alerts {
		if x.State == "firing" {
			out = append(out, x)
		}
	}
	return out
}
