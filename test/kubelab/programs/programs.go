// Package programs builds Kubernetes' own programs, and others that run beside strait, from the
// modules in test/kubelab/tools. Their go.mod and go.sum pin the exact versions.
//
// Inputs are those files. Output is a folder of programs in the user's cache for each set of
// modules, named after a hash of the set's files: programs are built once per machine, and again
// only when a version changes. An interrupted build continues where it stopped. It must not know
// what the programs are for.
package programs

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path"
	"path/filepath"
	"strings"
	"syscall"
	"time"

	"golang.org/x/mod/modfile"
)

// tools is where the modules are in the source tree.
const tools = "test/kubelab/tools"

// Set is modules whose programs are built together: names of folders below tools.
type Set []string

// Kubernetes is what every cluster needs, and an ingress controller.
var Kubernetes = Set{"etcd", "containerd", "kubernetes", oldest, newest, "coredns", "traefik"}

// oldest and newest are the modules of the oldest and the newest Kubernetes that strait is tested
// against, of which there is only an API server. The programs' names end in -oldest and -newest.
const (
	oldest = "kubernetes-oldest"
	newest = "kubernetes-newest"
)

// program is a program that a module's go.mod names as a tool.
type program struct {
	// dir is the module's folder, path is the package to build, name is the file to write.
	dir, path, name string
	// version is the version of the module that holds the package.
	version string
}

// Source returns the root of the checkout of strait that the working directory is in.
func Source(ctx context.Context) (string, error) {
	out, err := exec.CommandContext(ctx, "go", "env", "GOMOD").Output()
	if err != nil {
		return "", fmt.Errorf("find source of strait: %w", err)
	}
	mod := strings.TrimSpace(string(out))
	if filepath.Base(mod) != "go.mod" {
		return "", errors.New("find source of strait: the working directory is not in a checkout")
	}
	return filepath.Dir(mod), nil
}

// Dir returns the folder for the set's programs of a source tree, built or not:
// ~/.cache/strait/kube/<hash>. The hash is of the set's go.mod and go.sum files.
func (s Set) Dir(source string) (string, error) {
	cache, err := os.UserCacheDir()
	if err != nil {
		return "", fmt.Errorf("find cache: %w", err)
	}
	h := sha256.New()
	for _, m := range s {
		for _, name := range []string{"go.mod", "go.sum"} {
			b, err := os.ReadFile(filepath.Join(source, tools, m, name))
			if err != nil {
				return "", fmt.Errorf("read versions: %w", err)
			}
			fmt.Fprintf(h, "%s/%s %d\n%s", m, name, len(b), b)
		}
	}
	return filepath.Join(cache, "strait", "kube", hex.EncodeToString(h.Sum(nil)[:8])), nil
}

// Build builds the missing programs and returns their folder. It writes a line about each program
// to progress. To build Kubernetes takes ten to twenty minutes on two processors, 2 GB of memory
// and 1 GB of downloads.
func (s Set) Build(ctx context.Context, source string, progress io.Writer) (string, error) {
	dir, err := s.Dir(source)
	if err != nil {
		return "", err
	}
	all, err := s.list(source)
	if err != nil {
		return "", err
	}
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return "", fmt.Errorf("make cache: %w", err)
	}
	lock, err := lock(dir)
	if err != nil {
		return "", err
	}
	defer lock.Close()
	began, built := time.Now(), 0
	for i, p := range all {
		target := filepath.Join(dir, p.name)
		if _, err := os.Stat(target); err == nil {
			continue
		}
		fmt.Fprintf(progress, "building %s %s (%d of %d)", p.name, p.version, i+1, len(all))
		start := time.Now()
		if err := p.build(ctx, target); err != nil {
			fmt.Fprintln(progress)
			return "", err
		}
		fmt.Fprintf(progress, ": %.0f s\n", time.Since(start).Seconds())
		built++
	}
	if built > 0 {
		fmt.Fprintf(progress, "built %d programs in %.0f s; they are kept in %s\n", built, time.Since(began).Seconds(), dir)
	}
	return dir, nil
}

// Source returns the folder with the source of a module that a program of the set is built from.
func (s Set) Source(ctx context.Context, source, module string) (string, error) {
	var errs []error
	for _, m := range s {
		dir, err := moduleDir(ctx, filepath.Join(source, tools, m), module)
		if err == nil {
			return dir, nil
		}
		errs = append(errs, err)
	}
	return "", errors.Join(errs...)
}

// moduleDir returns the folder of the source of a module, in the version that the go.mod file in dir
// requires. It downloads the module if need be.
func moduleDir(ctx context.Context, dir, module string) (string, error) {
	cmd := exec.CommandContext(ctx, "go", "mod", "download", "-json", module)
	cmd.Dir = dir
	out, err := cmd.Output()
	if err != nil {
		return "", fmt.Errorf("download module %s: %w: %s", module, err, out)
	}
	var got struct{ Dir string }
	if err := json.Unmarshal(out, &got); err != nil {
		return "", fmt.Errorf("download module %s: %w", module, err)
	}
	return got.Dir, nil
}

// lock waits until no other process builds into the folder. Closing the file releases the lock.
func lock(dir string) (*os.File, error) {
	f, err := os.Open(dir)
	if err != nil {
		return nil, fmt.Errorf("lock cache: %w", err)
	}
	if err := syscall.Flock(int(f.Fd()), syscall.LOCK_EX); err != nil {
		return nil, errors.Join(fmt.Errorf("lock cache: %w", err), f.Close())
	}
	return f, nil
}

// Missing returns the names of the set's programs that are not built.
func (s Set) Missing(source string) ([]string, error) {
	dir, err := s.Dir(source)
	if err != nil {
		return nil, err
	}
	all, err := s.list(source)
	if err != nil {
		return nil, err
	}
	var out []string
	for _, p := range all {
		if _, err := os.Stat(filepath.Join(dir, p.name)); err != nil {
			out = append(out, p.name)
		}
	}
	return out, nil
}

// list reads the programs from the modules' go.mod files.
func (s Set) list(source string) ([]program, error) {
	var out []program
	for _, m := range s {
		dir := filepath.Join(source, tools, m)
		file := filepath.Join(dir, "go.mod")
		b, err := os.ReadFile(file)
		if err != nil {
			return nil, fmt.Errorf("read versions: %w", err)
		}
		found, err := parse(file, b)
		if err != nil {
			return nil, err
		}
		for _, p := range found {
			if p.dir = dir; m == oldest || m == newest {
				p.name += strings.TrimPrefix(m, "kubernetes")
			}
			out = append(out, p)
		}
	}
	return out, nil
}

// parse returns the tools of a go.mod, each with the version of its module.
func parse(file string, b []byte) ([]program, error) {
	mod, err := modfile.Parse(file, b, nil)
	if err != nil {
		return nil, fmt.Errorf("read versions: %w", err)
	}
	var out []program
	for _, t := range mod.Tool {
		p := program{path: t.Path, name: path.Base(t.Path)}
		if name, ok := names[t.Path]; ok {
			p.name = name
		}
		longest := 0
		for _, r := range mod.Require {
			if n := len(r.Mod.Path); n > longest && (t.Path == r.Mod.Path || strings.HasPrefix(t.Path, r.Mod.Path+"/")) {
				p.version, longest = r.Mod.Version, n
			}
		}
		out = append(out, p)
	}
	return out, nil
}

// names are those of programs that are not called after the last part of their package's path.
var names = map[string]string{
	"go.etcd.io/etcd/server/v3":         "etcd",
	"github.com/cilium/cilium/daemon":   "cilium-agent",
	"github.com/cilium/cilium/operator": "cilium-operator",
}

// tags are the build tags of programs, as their own makefiles set them.
var tags = map[string]string{"cilium-operator": "ipam_provider_operator"}

// build builds to a temporary file and renames it to target, so that target is always complete.
func (p program) build(ctx context.Context, target string) error {
	part := target + ".part"
	args := []string{"build", "-buildvcs=false", "-trimpath", "-mod=readonly", "-tags", tags[p.name], "-ldflags", p.ldflags(), "-o", part}
	if l, is := leaner[p.name]; is {
		file, err := l.modfile(ctx, p.dir)
		if err != nil {
			return fmt.Errorf("build %s: %w", p.path, err)
		}
		defer os.RemoveAll(filepath.Dir(file))
		args = append(args, "-modfile="+file)
	}
	cmd := exec.CommandContext(ctx, "go", append(args, p.path)...)
	cmd.Dir = p.dir
	cmd.Env = append(os.Environ(), "CGO_ENABLED=0", "GOWORK=off", "GOFLAGS=", "PWD="+p.dir)
	if out, err := cmd.CombinedOutput(); err != nil {
		return fmt.Errorf("build %s: %w\n%s", p.path, err, out)
	}
	if err := os.Rename(part, target); err != nil {
		return fmt.Errorf("build %s: %w", p.path, err)
	}
	return nil
}

// ldflags returns linker flags that give Kubernetes' programs their version. They report it to each
// other, and clients compare it.
func (p program) ldflags() string {
	flags := "-s -w"
	if !strings.HasPrefix(p.path, "k8s.io/kubernetes/") {
		return flags
	}
	major, rest, _ := strings.Cut(strings.TrimPrefix(p.version, "v"), ".")
	minor, _, _ := strings.Cut(rest, ".")
	for _, pkg := range []string{"k8s.io/client-go/pkg/version", "k8s.io/component-base/version"} {
		for _, v := range []string{"gitVersion=" + p.version, "gitMajor=" + major, "gitMinor=" + minor, "gitTreeState=clean"} {
			flags += " -X " + pkg + "." + v
		}
	}
	return flags
}
