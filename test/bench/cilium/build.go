package cilium

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"time"

	"golang.org/x/sys/unix"
)

// Version is the version of Cilium.
const Version = "1.20.2"

const (
	module = "github.com/cilium/cilium@v" + Version
	// sum is the module's hash, as a go.sum file would have it.
	sum = "h1:dqiEGIcXc+gqCLYG/l7VCFJ8GHyb4HUrwbZOpkX5dL8="
	// clang is the compiler that test/setup.sh installs. Cilium's image has the same version, 19.1.7.
	clang = "clang-19"
)

// Objects are the paths of the compiled bpf_sock.o, with and without tracing of sockets.
type Objects struct{ Traced, Untraced string }

// MissingError is what this machine lacks to build the objects.
type MissingError struct{ what string }

func (e *MissingError) Error() string { return e.what }

// In returns where Build puts the objects.
func In(dir string) Objects {
	return Objects{filepath.Join(dir, "traced", "bpf_sock.o"), filepath.Join(dir, "untraced", "bpf_sock.o")}
}

// Build fetches Cilium's module, unless it is in Go's cache of modules, and compiles its bpf_sock.c
// to objects in a folder. It returns a *MissingError if this machine has no compiler, or cannot have
// the module. It must run in the host's network namespace: by it the programs tell the host's
// sockets from those of pods.
func Build(ctx context.Context, dir string) (Objects, error) {
	if _, err := exec.LookPath(clang); err != nil {
		return Objects{}, &MissingError{"there is no " + clang + ": run `make setup` as root"}
	}
	source, err := fetch(ctx, dir)
	if err != nil {
		return Objects{}, err
	}
	cookie, err := netnsCookie()
	if err != nil {
		return Objects{}, err
	}
	out := In(dir)
	return out, errors.Join(
		compile(ctx, source, out.Traced, nodeConfig(cookie, true)),
		compile(ctx, source, out.Untraced, nodeConfig(cookie, false)),
	)
}

// fetch returns the folder with the module's source. It runs in a folder without a go.mod, so that
// Cilium's module becomes no dependency of this one.
func fetch(ctx context.Context, dir string) (string, error) {
	ctx, cancel := context.WithTimeout(ctx, 5*time.Minute) // 37 MB
	defer cancel()
	cmd := exec.CommandContext(ctx, "go", "mod", "download", "-json", module)
	cmd.Dir = dir
	cmd.Env = append(os.Environ(), "GOFLAGS=", "GOWORK=off")
	var failure bytes.Buffer
	cmd.Stderr = &failure
	text, err := cmd.Output()
	if errors.Is(err, exec.ErrNotFound) {
		return "", &MissingError{"there is no go command to fetch Cilium's module with"}
	}
	var got struct{ Dir, Sum, Error string }
	if json.Unmarshal(text, &got) != nil || got.Dir == "" {
		return "", &MissingError{fmt.Sprintf("the module %s cannot be had: %s", module, oneLine(got.Error, failure.String(), err))}
	}
	if got.Sum != sum {
		return "", fmt.Errorf("the module %s has the hash %s, want %s", module, got.Sum, sum)
	}
	return got.Dir, nil
}

// oneLine returns the first of these that is not empty, without line breaks.
func oneLine(a, b string, err error) string {
	for _, s := range []string{a, b, fmt.Sprint(err)} {
		if words := bytes.Fields([]byte(s)); len(words) > 0 {
			return string(bytes.Join(words, []byte(" ")))
		}
	}
	return ""
}

// flags are StandardCFlags of Cilium's pkg/datapath/loader/compile.go, and the instruction set that
// it chooses on Linux 5.1 and newer.
var flags = []string{
	"-g", "-O2", "--target=bpf", "-std=gnu99", "-nostdinc", "-ftrap-function=__undefined_trap",
	"-Wall", "-Wextra", "-Werror", "-Wshadow", "-Wno-address-of-packed-member", "-Wno-unknown-warning-option",
	"-Wno-gnu-variable-sized-type-not-at-end", "-Wimplicit-int-conversion", "-Wenum-conversion", "-Wimplicit-fallthrough",
	"-mcpu=v3",
}

// compile compiles bpf_sock.c. The generated headers lie where Cilium's agent writes them, and come
// before those of the module, which are only for compiling without an agent.
func compile(ctx context.Context, source, object, nodeConfig string) error {
	state := filepath.Dir(object)
	globals := filepath.Join(state, "globals")
	if err := os.MkdirAll(globals, 0o755); err != nil {
		return fmt.Errorf("make a folder for the objects: %w", err)
	}
	err := errors.Join(
		os.WriteFile(filepath.Join(globals, "node_config.h"), []byte(nodeConfig), 0o644),
		os.WriteFile(filepath.Join(state, "netdev_config.h"), []byte(netdevConfig), 0o644),
	)
	if err != nil {
		return fmt.Errorf("write the configuration: %w", err)
	}
	library := filepath.Join(source, "bpf")
	args := append([]string{"-I" + globals, "-I" + state, "-I" + library, "-I" + filepath.Join(library, "include")}, flags...)
	cmd := exec.CommandContext(ctx, clang, append(args, "-c", filepath.Join(library, "bpf_sock.c"), "-o", object)...)
	if out, err := cmd.CombinedOutput(); err != nil {
		return fmt.Errorf("compile bpf_sock.c: %w:\n%s", err, out)
	}
	return nil
}

// netnsCookie returns the cookie of this thread's network namespace.
func netnsCookie() (uint64, error) {
	fd, err := unix.Socket(unix.AF_INET, unix.SOCK_STREAM|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		return 0, fmt.Errorf("open a socket: %w", err)
	}
	defer unix.Close(fd)
	cookie, err := unix.GetsockoptUint64(fd, unix.SOL_SOCKET, unix.SO_NETNS_COOKIE)
	if err != nil {
		return 0, fmt.Errorf("read the network namespace's cookie: %w", err)
	}
	return cookie, nil
}
