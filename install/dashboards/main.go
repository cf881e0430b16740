// Command dashboards writes the Grafana dashboards of the chart, with Grafana's own types. It is
// not linked into strait.
//
// Inputs are the tables of panels in clusterset.go and node.go; outputs are JSON files, which are
// committed. It must not know strait's code.
package main

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
)

//go:generate go run .

// folder is where the chart has the dashboards.
const folder = "../chart/strait/monitoring/dashboards"

func main() {
	if err := write(); err != nil {
		fmt.Fprintln(os.Stderr, "dashboards:", err)
		os.Exit(1)
	}
}

func write() error {
	files, err := files()
	if err != nil {
		return err
	}
	for name, text := range files {
		if err := os.WriteFile(filepath.Join(folder, name), text, 0o644); err != nil {
			return fmt.Errorf("write dashboard: %w", err)
		}
	}
	return nil
}

// files are the dashboards by the names of their files.
func files() (map[string][]byte, error) {
	out := map[string][]byte{}
	for _, p := range []page{clusterset, node} {
		d, err := p.build()
		if err != nil {
			return nil, fmt.Errorf("build dashboard %s: %w", p.name, err)
		}
		text, err := json.MarshalIndent(d, "", "  ")
		if err != nil {
			return nil, fmt.Errorf("encode dashboard %s: %w", p.name, err)
		}
		out[p.name+".json"] = append(text, '\n')
	}
	return out, nil
}
