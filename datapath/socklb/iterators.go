package socklb

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"

	"github.com/cilium/ebpf"
	"github.com/cilium/ebpf/btf"
	"github.com/cilium/ebpf/link"

	"strait.io/strait/datapath"
	"strait.io/strait/datapath/socklb/layout"
)

// featureLists is the feature that pinLists needs.
var featureLists = datapath.Feature{Name: "iterators over socket storage", Since: "5.9",
	Without: "records that sockets have beside their homes are not listed, and a stale UDP socket with such a record is not closed"}

// pinLists pins the iterators that list what is in the storage of sockets, in the directory of
// links. Those that are pinned already stay: they belong to the same maps, and what they print is
// part of the layout. It reports whether the kernel has what they need.
func pinLists(dir string, maps *layout.Maps) (bool, error) {
	missing := map[string]*ebpf.Map{}
	for name, of := range layout.Lists {
		if _, err := os.Stat(filepath.Join(dir, name)); errors.Is(err, fs.ErrNotExist) {
			missing[name] = map[string]*ebpf.Map{
				layout.MapConnectedFlows: maps.ConnectedFlows, layout.MapUnconnectedFlows: maps.UnconnectedFlows,
			}[of]
		} else if err != nil {
			return false, err
		}
	}
	if len(missing) == 0 {
		return true, nil
	}
	spec, err := layout.ListSpec()
	if err != nil {
		return false, err
	}
	c, err := ebpf.NewCollection(spec)
	if errors.Is(err, ebpf.ErrNotSupported) || errors.Is(err, btf.ErrNotFound) || errors.Is(err, fs.ErrNotExist) {
		return false, nil
	}
	if err != nil {
		return false, fmt.Errorf("load lists of records: %w", layout.Explain(err))
	}
	defer c.Close()
	for name, m := range missing {
		if err := pinList(filepath.Join(dir, name), c.Programs[name], m); err != nil {
			return false, fmt.Errorf("pin list %s: %w", name, err)
		}
	}
	return true, nil
}

func pinList(at string, p *ebpf.Program, m *ebpf.Map) error {
	l, err := link.AttachIter(link.IterOptions{Program: p, Map: m})
	if err != nil {
		return err
	}
	defer l.Close()
	return l.Pin(at)
}
