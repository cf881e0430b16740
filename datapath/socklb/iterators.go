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
	"golang.org/x/sys/unix"

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
			missing[name] = storage(maps)[of]
		} else if err != nil {
			return false, err
		}
	}
	if len(missing) == 0 {
		return true, nil
	}
	err := pinMapLists(dir, missing)
	if errors.Is(err, unix.EPERM) {
		// Either rights are missing, or a kernel that is locked down refuses iterators over maps (seen on
		// 6.18). In the first case, iterators over files are refused, too.
		if pinFileLists(dir, missing, maps) == nil {
			return true, nil
		}
	}
	if errors.Is(err, ebpf.ErrNotSupported) || errors.Is(err, btf.ErrNotFound) || errors.Is(err, fs.ErrNotExist) {
		return false, nil
	}
	return err == nil, err
}

// storage has the maps in the storage of sockets, by name.
func storage(maps *layout.Maps) map[string]*ebpf.Map {
	return map[string]*ebpf.Map{layout.MapConnectedFlows: maps.ConnectedFlows, layout.MapUnconnectedFlows: maps.UnconnectedFlows}
}

// pinMapLists pins lists that are iterators over the maps themselves.
func pinMapLists(dir string, missing map[string]*ebpf.Map) error {
	spec, err := layout.ListSpec()
	if err != nil {
		return err
	}
	c, err := ebpf.NewCollection(spec)
	if err != nil {
		return fmt.Errorf("load lists of records: %w", layout.Explain(err))
	}
	defer c.Close()
	for name, m := range missing {
		if err := pinList(filepath.Join(dir, name), link.IterOptions{Program: c.Programs[name], Map: m}); err != nil {
			return fmt.Errorf("pin list %s: %w", name, err)
		}
	}
	return nil
}

// pinFileLists pins lists that are iterators over the open files of all processes.
func pinFileLists(dir string, missing map[string]*ebpf.Map, maps *layout.Maps) error {
	spec, err := layout.FileListSpec()
	if err != nil {
		return err
	}
	c, err := ebpf.NewCollectionWithOptions(spec, ebpf.CollectionOptions{MapReplacements: storage(maps)})
	if err != nil {
		return fmt.Errorf("load lists of records by open files: %w", layout.Explain(err))
	}
	defer c.Close()
	for name := range missing {
		if err := pinList(filepath.Join(dir, name), link.IterOptions{Program: c.Programs[layout.FileLists[name]]}); err != nil {
			return fmt.Errorf("pin list %s by open files: %w", name, err)
		}
	}
	return nil
}

func pinList(at string, of link.IterOptions) error {
	l, err := link.AttachIter(of)
	if err != nil {
		return err
	}
	defer l.Close()
	return l.Pin(at)
}
