// Package kernels gets Debian's kernels, unpacked and never installed: the newest of each series asked for,
// from the package mirror that this machine uses already, into a cache outside of the checkout.
//
// Input is a list of series ("5.10", "newest"); output is where each kernel's image and modules lie. apt
// runs on a state of its own, so that the system's sources stay as they are and no root is needed. It must
// not know what is done with a kernel.
package kernels

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"time"

	"golang.org/x/sys/unix"

	"strait.io/strait/test/vm/initrd"
)

// indexAge is how old the list of packages may be: what "newest" is changes weekly at most.
const indexAge = 7 * 24 * time.Hour

// Cache is a folder of unpacked kernels.
type Cache struct {
	Dir string
	Log *slog.Logger
}

// Kernel is one unpacked kernel.
type Kernel struct {
	// Series is what was asked for, Version the upstream version, such as 6.1.192.
	Series, Version string
	// Image is what boots, Modules maps the kernel's name of a module to its file.
	Image   string
	Modules map[string]string
}

// DefaultDir is $STRAIT_VM_CACHE, or strait/kernels in the user's cache.
func DefaultDir() (string, error) {
	if dir := os.Getenv("STRAIT_VM_CACHE"); dir != "" {
		return filepath.Abs(dir)
	}
	dir, err := os.UserCacheDir()
	if err != nil {
		return "", fmt.Errorf("find a folder to keep kernels in: %w; set STRAIT_VM_CACHE", err)
	}
	return filepath.Join(dir, "strait", "kernels"), nil
}

// Get returns a kernel for each series, in that order, and fetches what the cache lacks. Without a network
// the newest that the cache has of a series serves.
func (c Cache) Get(ctx context.Context, series []string) ([]Kernel, error) {
	if err := os.MkdirAll(c.Dir, 0o755); err != nil {
		return nil, err
	}
	unlock, err := c.lock()
	if err != nil {
		return nil, err
	}
	defer unlock()
	a := apt{dir: filepath.Join(c.Dir, ".apt")}
	offered, offline := c.offers(ctx, a)
	if offline != nil {
		c.Log.Warn("no list of kernel packages; using what the cache has", "error", offline)
		if offered, err = c.cached(); err != nil {
			return nil, err
		}
	}
	var out []Kernel
	for _, s := range series {
		p, ok := pick(s, offered)
		if !ok {
			return nil, errors.Join(fmt.Errorf("no Debian kernel of the series %q: name one such as 6.1, or newest", s), offline)
		}
		k, err := c.unpacked(ctx, a, p)
		if err != nil {
			return nil, fmt.Errorf("kernel %s: %w", p.version, err)
		}
		k.Series = s
		out = append(out, k)
	}
	return out, nil
}

// offers lists what the mirror has, from a list that is fresh enough.
func (c Cache) offers(ctx context.Context, a apt) ([]pkg, error) {
	if info, err := os.Stat(a.stamp()); err != nil || time.Since(info.ModTime()) > indexAge {
		c.Log.Info("reading the list of Debian's kernels")
		if err := a.update(ctx); err != nil {
			return nil, err
		}
	}
	return a.metaPackages(ctx)
}

// cached lists the versions that are unpacked.
func (c Cache) cached() ([]pkg, error) {
	entries, err := os.ReadDir(c.Dir)
	var out []pkg
	for _, e := range entries {
		if !strings.HasPrefix(e.Name(), ".") {
			out = append(out, pkg{version: e.Name()})
		}
	}
	return out, err
}

// unpacked returns a kernel of the cache, fetching it first where it is not there. A folder with the
// version's name is whole: it is made under another name.
func (c Cache) unpacked(ctx context.Context, a apt, p pkg) (Kernel, error) {
	dir := filepath.Join(c.Dir, p.version)
	if _, err := os.Stat(dir); errors.Is(err, fs.ErrNotExist) {
		c.Log.Info("fetching a kernel", "version", p.version)
		tmp, err := os.MkdirTemp(c.Dir, ".new-")
		if err != nil {
			return Kernel{}, err
		}
		defer os.RemoveAll(tmp)
		if err := a.unpack(ctx, p, tmp); err != nil {
			return Kernel{}, err
		}
		if _, err := find(tmp); err != nil {
			return Kernel{}, err
		}
		if err := os.Chmod(tmp, 0o755); err != nil {
			return Kernel{}, err
		}
		if err := os.Rename(tmp, dir); err != nil {
			return Kernel{}, err
		}
	}
	k, err := find(dir)
	k.Version, _, _ = strings.Cut(p.version, "-")
	return k, err
}

// lock keeps two runs from fetching the same.
func (c Cache) lock() (unlock func(), err error) {
	f, err := os.OpenFile(filepath.Join(c.Dir, ".lock"), os.O_CREATE|os.O_RDWR, 0o644)
	if err != nil {
		return nil, err
	}
	if err := unix.Flock(int(f.Fd()), unix.LOCK_EX); err != nil {
		return nil, fmt.Errorf("lock %s: %w", c.Dir, err)
	}
	return func() { f.Close() }, nil
}

// find looks for image and modules: where they lie differs from release to release.
func find(dir string) (Kernel, error) {
	k := Kernel{Modules: map[string]string{}}
	err := filepath.WalkDir(dir, func(path string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		if strings.HasPrefix(d.Name(), "vmlinuz") && d.Type().IsRegular() {
			k.Image = path
		}
		if name := initrd.ModuleName(d.Name()); name != "" {
			k.Modules[strings.ReplaceAll(name, "-", "_")] = path
		}
		return nil
	})
	if err == nil && (k.Image == "" || len(k.Modules) == 0) {
		err = fmt.Errorf("%s holds image %q and %d modules: the package's layout changed, or remove the folder to fetch it again",
			dir, k.Image, len(k.Modules))
	}
	return k, err
}

// Module reads a module, unpacked; nil is one that this kernel has not as a file.
func (k Kernel) Module(ctx context.Context, name string) ([]byte, error) {
	path, ok := k.Modules[name]
	if !ok {
		return nil, nil
	}
	switch filepath.Ext(path) {
	case ".ko":
		return os.ReadFile(path)
	case ".xz":
		return exec.CommandContext(ctx, "xz", "-dc", path).Output()
	}
	return nil, fmt.Errorf("%s is packed in a way that is not known here", path)
}
