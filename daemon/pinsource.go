package daemon

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"strait.io/strait/daemon/trustlevel"
	"strait.io/strait/daemon/watch"
)

// pinsAndMembers returns what reads the pins and the files of members as one text, see
// trustlevel.Listed; nil if there is no file of pins.
func pinsAndMembers(c AuthorityConfig) func() (string, error) {
	if c.PinsFile == "" {
		return nil
	}
	return func() (string, error) {
		members, err := readMembers(c.MembersDir)
		if err != nil {
			return "", err
		}
		pins, err := watch.Text(c.PinsFile)
		if errors.Is(err, fs.ErrNotExist) && len(members) > 0 {
			err = nil // the leader makes them
		}
		return trustlevel.Listed(pins, members), err
	}
}

// readMembers reads the files in a directory, but those whose names start with a dot. A directory
// that is not there has none.
func readMembers(dir string) (map[string]string, error) {
	if dir == "" {
		return nil, nil
	}
	// A kubelet keeps all files of a volume behind this link, so that they change together.
	if at, err := filepath.EvalSymlinks(filepath.Join(dir, "..data")); err == nil {
		dir = at
	}
	entries, err := os.ReadDir(dir)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	members := map[string]string{}
	for _, e := range entries {
		if e.IsDir() || strings.HasPrefix(e.Name(), ".") {
			continue
		}
		text, err := watch.Text(filepath.Join(dir, e.Name()))
		if err != nil {
			return nil, err
		}
		members[e.Name()] = text
	}
	return members, err
}
