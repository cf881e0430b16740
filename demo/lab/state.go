package lab

import (
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
)

// ErrNone reports that there is no lab in the directory.
var ErrNone = errors.New("no demo is up in this directory")

// state is what a later process needs to use or remove a lab. It is saved once the lab's cgroup and
// directory exist, before anything else is made.
type state struct {
	Size Size `json:"size"`
	// Pid is the process that built the lab.
	Pid int `json:"pid"`
	// Kept is set if the process that built the lab left it up on purpose.
	Kept bool `json:"kept,omitempty"`
	// Down is set if only logs are left.
	Down bool `json:"down,omitempty"`
	// Cgroup is the lab's cgroup directory; CgroupMount is set if the lab mounted cgroup v2 itself.
	Cgroup      string `json:"cgroup"`
	CgroupMount string `json:"cgroupMount,omitempty"`
	// MadeDirs are directories outside Dir that did not exist before.
	MadeDirs []string `json:"madeDirs,omitempty"`
}

const stateFile = "lab.json"

func (s state) save(dir string) error {
	b, err := json.MarshalIndent(s, "", "  ")
	if err != nil {
		return fmt.Errorf("encode state of the demo: %w", err)
	}
	if err := os.WriteFile(filepath.Join(dir, stateFile), append(b, '\n'), 0o644); err != nil {
		return fmt.Errorf("write state of the demo: %w", err)
	}
	return nil
}

func loadState(dir string) (state, error) {
	path := filepath.Join(dir, stateFile)
	b, err := os.ReadFile(path)
	if errors.Is(err, os.ErrNotExist) {
		return state{}, ErrNone
	}
	if err != nil {
		return state{}, fmt.Errorf("read state of the demo: %w", err)
	}
	var s state
	if err := json.Unmarshal(b, &s); err != nil {
		return state{}, fmt.Errorf("state of the demo %s: %w; remove the file and run `strait demo down`", path, err)
	}
	if err := s.Size.Check(); err != nil {
		return state{}, fmt.Errorf("state of the demo %s: %w; remove the file and run `strait demo down`", path, err)
	}
	return s, nil
}

// Open returns the lab in a directory, to start processes in it or to tear it down. It returns
// ErrNone if there is none.
func Open(dir string, enter []string) (*Lab, error) {
	dir, err := filepath.Abs(dir)
	if err != nil {
		return nil, fmt.Errorf("directory %s: %w", dir, err)
	}
	s, err := loadState(dir)
	if err != nil {
		return nil, err
	}
	return &Lab{Topology: New(s.Size), Dir: dir, enter: enter, state: s}, nil
}
