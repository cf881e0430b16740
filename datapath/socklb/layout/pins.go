package layout

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"github.com/cilium/ebpf"
	"golang.org/x/sys/unix"
)

// The directory of pins:
//
//	layout-4/<map>   maps; the number is that of their layout
//	<map>            a symbolic link to layout-4/<map>, for people
//	links/<hook>     links, which hold the programs; links/<hook>_<id> those of a cgroup below
//
// The directory is made under another name and renamed into place, so it is either complete or
// missing.
const (
	// Number is this program's layout; Oldest is the first one that it knows. The layouts before it
	// were never released.
	Number = 4
	Oldest = 4
	// LinksDir holds the links.
	LinksDir = "links"

	prefix = "layout-"
)

// Dir returns the name of a layout's directory.
func Dir(number int) string { return prefix + strconv.Itoa(number) }

// MapsDir returns where the maps of a layout are pinned.
func MapsDir(pins string, number int) string { return filepath.Join(pins, Dir(number)) }

// Lock locks a directory. The lock is released when the file is closed or the process dies.
func Lock(dir string, how int) (*os.File, error) {
	f, err := os.Open(dir)
	if err != nil {
		return nil, err
	}
	for {
		err = unix.Flock(int(f.Fd()), how)
		if !errors.Is(err, unix.EINTR) {
			break
		}
	}
	if err != nil {
		f.Close()
		return nil, err
	}
	return f, nil
}

// Found returns the layouts of the pins in dir, ascending: none if dir is missing or empty, two if
// an upgrade was interrupted. It is an error if dir is not empty and has no pins of strait.
func Found(dir string) (found []int, err error) {
	entries, err := os.ReadDir(dir)
	if errors.Is(err, fs.ErrNotExist) || err == nil && len(entries) == 0 {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("pins %s: %w", dir, err)
	}
	for _, e := range entries {
		digits, ok := strings.CutPrefix(e.Name(), prefix)
		n, err := strconv.Atoi(digits)
		if ok && err == nil {
			found = append(found, n)
		}
	}
	if found == nil {
		return nil, fmt.Errorf("pins %s: the directory holds something other than strait's pins; choose another", dir)
	}
	slices.Sort(found)
	return found, nil
}

// Open opens a map of this program's layout. If the pins have another layout, the error has what
// to do.
func Open(pins, name string, o *ebpf.LoadPinOptions) (*ebpf.Map, error) {
	at := filepath.Join(MapsDir(pins, Number), name)
	m, err := ebpf.LoadPinnedMap(at, o)
	if err == nil {
		return m, nil
	}
	if found, _ := Found(pins); len(found) > 0 && found[len(found)-1] != Number {
		return nil, fmt.Errorf("pins %s have %s, this program reads %s; use the program that came with the running straitd, or start this version of straitd",
			pins, Dir(found[len(found)-1]), Dir(Number))
	}
	return nil, fmt.Errorf("open %s: %w", at, Explain(err))
}

// Explain adds what to do to an EPERM or EACCES of the bpf system call.
func Explain(err error) error {
	if errors.Is(err, unix.EPERM) || errors.Is(err, unix.EACCES) {
		return fmt.Errorf("%w; run as root, or with the capabilities BPF, NET_ADMIN, PERFMON and (before Linux 5.11) SYS_RESOURCE", err)
	}
	return err
}
