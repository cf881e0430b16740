// Package kernels fetches Debian's kernels and unpacks them, without installing them: the newest of
// each requested series, from the package mirror that this machine already uses, into a cache
// outside the checkout.
//
// Input is a list of series ("5.10", "newest"); output is the paths of each kernel's image and
// modules. apt runs with its own state directory, so that the system's sources stay unchanged and
// no root is needed. It must not know what is done with a kernel.
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

// indexAge is how old the package lists may be: new kernels come at most once a week.
const indexAge = 7 * 24 * time.Hour

// Cache is a folder of unpacked kernels.
type Cache struct {
	Dir string
	Log *slog.Logger
}

// Kernel is one unpacked kernel.
type Kernel struct {
	// Series is the requested series. Version is the upstream version, such as 6.1.192.
	Series, Version string
	// Image is the kernel image's file. Modules maps the kernel's name for a module to its file.
	Image   string
	Modules map[string]string
}

// DefaultDir returns $STRAIT_VM_CACHE, or strait/kernels in the user's cache directory.
func DefaultDir() (string, error) {
	if dir := os.Getenv("STRAIT_VM_CACHE"); dir != "" {
		return filepath.Abs(dir)
	}
	dir, err := os.UserCacheDir()
	if err != nil {
		return "", fmt.Errorf("find the cache folder for kernels: %w; set STRAIT_VM_CACHE", err)
	}
	return filepath.Join(dir, "strait", "kernels"), nil
}

// Get returns a kernel for each series, in that order, and fetches those that the cache lacks.
// Without a network it returns the newest of each series in the cache.
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
		c.Log.Warn("cannot list kernel packages; using the kernels in the cache", "error", offline)
		if offered, err = c.cached(); err != nil {
			return nil, err
		}
	}
	var out []Kernel
	for _, s := range series {
		p, ok := pick(s, offered)
		if !ok {
			return nil, errors.Join(fmt.Errorf("no Debian kernel of series %q: use a series such as 6.1, or newest", s), offline)
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

// offers lists the kernels that the mirror has. It first updates the package lists if they are too
// old.
func (c Cache) offers(ctx context.Context, a apt) ([]pkg, error) {
	if info, err := os.Stat(a.stamp()); err != nil || time.Since(info.ModTime()) > indexAge {
		c.Log.Info("downloading the list of Debian's kernels")
		if err := a.update(ctx); err != nil {
			return nil, err
		}
	}
	return a.metaPackages(ctx)
}

// cached lists the unpacked kernels.
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

// unpacked returns a kernel in the cache, and fetches it first if it is not there. A folder named
// after a version is always complete: it is built under another name and then renamed.
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

// lock prevents two runs from fetching the same kernel.
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

// find searches dir for the image and the modules: their place differs from release to release.
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
		err = fmt.Errorf("%s holds image %q and %d modules: remove the folder to fetch it again; if that does not help, the package's layout has changed",
			dir, k.Image, len(k.Modules))
	}
	return k, err
}

// Module returns a module's decompressed content, or nil if this kernel has no file for it.
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
	return nil, fmt.Errorf("read module %s: unknown compression; want .ko or .ko.xz", path)
}
