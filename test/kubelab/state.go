package kubelab

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
)

// fabricName is the machine that runs etcd and the API servers, and routes between the clusters'
// nodes.
const fabricName = "fabric"

// state is what Open needs to know about a lab that another process brought up.
type state struct {
	// Name identifies the lab on this machine. It names its cgroup, and its network namespaces
	// begin with it.
	Name            string   `json:"name"`
	Programs        string   `json:"programs"`
	Clusters        int      `json:"clusters"`
	Nodes           int      `json:"nodes"`
	WithoutPodCIDRs []string `json:"withoutPodCIDRs,omitempty"`
	DualStack       []string `json:"dualStack,omitempty"`
	Oldest          []string `json:"oldest,omitempty"`
	Newest          []string `json:"newest,omitempty"`
	// CNIs are the pod networks of clusters, by name of the cluster.
	CNIs map[string]CNI `json:"cnis,omitempty"`
}

// nameOf returns the name of the lab in a folder. It is always the same for the same folder.
func nameOf(dir string) string {
	sum := sha256.Sum256([]byte(dir))
	return "strait-lab-" + hex.EncodeToString(sum[:3])
}

func (l *Lab) save() error {
	for _, d := range []string{"bin", "log", "images"} {
		if err := os.MkdirAll(filepath.Join(l.Dir, d), 0o755); err != nil {
			return fmt.Errorf("make folder of the lab: %w", err)
		}
	}
	b, err := json.MarshalIndent(l.state, "", "  ")
	if err != nil {
		return fmt.Errorf("encode state of the lab: %w", err)
	}
	if err := os.WriteFile(l.path("lab.json"), append(b, '\n'), 0o644); err != nil {
		return fmt.Errorf("write state of the lab: %w", err)
	}
	return nil
}

// Open returns the lab in a folder, which is up or only partly removed. If there is none, the error
// is os.ErrNotExist.
func Open(dir string, log *slog.Logger) (*Lab, error) {
	dir, err := filepath.Abs(dir)
	if err != nil {
		return nil, fmt.Errorf("folder %s: %w", dir, err)
	}
	l := &Lab{Dir: dir, log: log}
	b, err := os.ReadFile(l.path("lab.json"))
	if err != nil {
		if entries, _ := os.ReadDir(dir); errors.Is(err, os.ErrNotExist) && len(entries) > 0 && !onlyLogs(entries) {
			return nil, fmt.Errorf("folder %s is not empty and holds no lab: name a folder that does not exist yet", dir)
		}
		return nil, fmt.Errorf("read state of the lab: %w", err)
	}
	if err := json.Unmarshal(b, &l.state); err != nil {
		return nil, fmt.Errorf("decode %s: %w", l.path("lab.json"), err)
	}
	if l.Topology, err = NewTopology(l.state.Clusters, l.state.Nodes, l.WithoutPodCIDRs...); err != nil {
		return nil, err
	}
	return l, l.findCgroups()
}

// onlyLogs reports whether a folder holds only what keepLogs leaves.
func onlyLogs(entries []os.DirEntry) bool { return len(entries) == 1 && entries[0].Name() == "log" }

// keepLogs removes everything but the logs, which say why a lab did not come up.
func (l *Lab) keepLogs() error {
	entries, err := os.ReadDir(l.Dir)
	if err != nil {
		return fmt.Errorf("remove all but logs: %w", err)
	}
	var errs []error
	for _, e := range entries {
		if e.Name() != "log" {
			errs = append(errs, os.RemoveAll(l.path(e.Name())))
		}
	}
	return errors.Join(errs...)
}

// path returns the path of one of the lab's files, program that of one of the programs. netns
// returns the name of a machine's network namespace.
func (l *Lab) path(parts ...string) string {
	return filepath.Join(append([]string{l.Dir}, parts...)...)
}
func (l *Lab) program(name string) string  { return filepath.Join(l.Programs, name) }
func (l *Lab) netns(machine string) string { return l.Name + "-" + machine }
