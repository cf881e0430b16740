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
//	layout-3/<map>   maps; the number says which layout they have
//	<map>            a symbolic link to layout-3/<map>, for people
//	links/<hook>     links, which hold the programs
//
// It is made elsewhere and renamed into place, so that it is whole or not there. In layout 1 the maps were
// in <map>, and layout-1/ was empty.
const (
	// Number is that of this program's layout, Oldest that of the first which it can upgrade from.
	Number = 3
	Oldest = 1
	// LinksDir holds the links.
	LinksDir = "links"

	prefix = "layout-"
)

// Dir is the name of the directory of a layout.
func Dir(number int) string { return prefix + strconv.Itoa(number) }

// MapsDir is where the maps of a layout are pinned.
func MapsDir(pins string, number int) string {
	if number == 1 {
		return pins
	}
	return filepath.Join(pins, Dir(number))
}

// Lock takes the lock of a directory; it is released when the file is closed, or the process dies.
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

// Found returns the layouts of the pins in dir, ascending; none if it is missing or empty, two if an
// upgrade was interrupted. It is an error if there is anything but pins of strait.
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
		return nil, fmt.Errorf("pins %s: the directory holds something else than pins of strait: name another", dir)
	}
	slices.Sort(found)
	return found, nil
}

// Open opens a map of this program's layout, and says what to do where there is another.
func Open(pins, name string, o *ebpf.LoadPinOptions) (*ebpf.Map, error) {
	at := filepath.Join(MapsDir(pins, Number), name)
	m, err := ebpf.LoadPinnedMap(at, o)
	if err == nil {
		return m, nil
	}
	if found, _ := Found(pins); len(found) > 0 && found[len(found)-1] != Number {
		return nil, fmt.Errorf("pins %s have %s, this program reads %s: use the one that came with the running straitd, or start it",
			pins, Dir(found[len(found)-1]), Dir(Number))
	}
	return nil, fmt.Errorf("open %s: %w", at, Explain(err))
}

// Explain says what to do about an EPERM of the bpf system call.
func Explain(err error) error {
	if errors.Is(err, unix.EPERM) || errors.Is(err, unix.EACCES) {
		return fmt.Errorf("%w: run as root, or with the capabilities BPF, NET_ADMIN and (before Linux 5.11) SYS_RESOURCE", err)
	}
	return err
}
