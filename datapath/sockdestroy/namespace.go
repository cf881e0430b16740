package sockdestroy

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"

	"golang.org/x/sys/unix"
)

// namespace is a network namespace and the paths by which it can be opened: those of its processes,
// which come and go, and its mount points.
type namespace struct {
	inode uint64
	paths []string
}

// namespaces lists the network namespaces of the machine: those of processes and those that are
// mounted (by `ip netns` and container runtimes). A namespace that only a file descriptor holds is
// not found. The error names what could not be read; the list is valid without it.
func namespaces(procfs string) ([]namespace, error) {
	var list []namespace
	at := map[uint64]int{}
	add := func(inode uint64, path string) {
		n, known := at[inode]
		if !known {
			n = len(list)
			at[inode] = n
			list = append(list, namespace{inode: inode})
		}
		list[n].paths = append(list[n].paths, path)
	}
	errs := []error{ofProcesses(procfs, add)}
	// The mounts of the machine, and our own, which differ in a container.
	for _, who := range []string{"1", "self"} {
		errs = append(errs, ofMounts(filepath.Join(procfs, who), add))
	}
	return list, errors.Join(errs...)
}

func ofProcesses(procfs string, add func(inode uint64, path string)) error {
	entries, err := os.ReadDir(procfs)
	if err != nil {
		return fmt.Errorf("list processes: %w", err)
	}
	denied, total := 0, 0
	for _, e := range entries {
		if _, err := strconv.Atoi(e.Name()); err != nil {
			continue
		}
		total++
		path := filepath.Join(procfs, e.Name(), "ns", "net")
		name, err := os.Readlink(path)
		// Some machines hide their init process even from root. It is in the machine's first
		// namespace, and so is the daemon.
		if errors.Is(err, fs.ErrPermission) && e.Name() != "1" {
			denied++
		}
		if inode, ok := inodeOf(name); err == nil && ok { // otherwise the process may have ended
			add(inode, path)
		}
	}
	if denied > 0 {
		return fmt.Errorf("read the network namespaces of %d of %d processes: permission denied; run as root, or with the capability SYS_PTRACE", denied, total)
	}
	return nil
}

// ofMounts adds the network namespaces that are mounted in the mount namespace of the process proc.
func ofMounts(proc string, add func(inode uint64, path string)) error {
	f, err := os.Open(filepath.Join(proc, "mountinfo"))
	if err != nil {
		return fmt.Errorf("list mounts: %w", err)
	}
	defer f.Close()
	return mounted(f, func(inode uint64, point string) {
		add(inode, filepath.Join(proc, "root", point))
	})
}

// mounted calls add for each mount of a network namespace in mountinfo, see proc_pid_mountinfo(5).
func mounted(mountinfo io.Reader, add func(inode uint64, point string)) error {
	lines := bufio.NewScanner(mountinfo)
	lines.Buffer(nil, 1<<20)
	for lines.Scan() {
		mount, source, ok := strings.Cut(lines.Text(), " - ")
		fields := strings.Fields(mount)
		if !ok || len(fields) < 5 || !strings.HasPrefix(source, "nsfs ") {
			continue
		}
		if inode, ok := inodeOf(fields[3]); ok {
			add(inode, unescape.Replace(fields[4]))
		}
	}
	if err := lines.Err(); err != nil {
		return fmt.Errorf("read mountinfo: %w", err)
	}
	return nil
}

// unescape undoes the kernel's escaping of mount points.
var unescape = strings.NewReplacer(`\040`, " ", `\011`, "\t", `\012`, "\n", `\134`, `\`)

// inodeOf parses the name of a network namespace, such as net:[4026531840].
func inodeOf(name string) (uint64, bool) {
	number, ok := strings.CutPrefix(name, "net:[")
	if !ok {
		return 0, false
	}
	inode, err := strconv.ParseUint(strings.TrimSuffix(number, "]"), 10, 64)
	return inode, err == nil
}

// visit calls here in one namespace after the other until no target is left, and returns how many
// namespaces it entered. A failure in one namespace does not hold up the others.
func visit(ctx context.Context, procfs string, spaces []namespace, here func() (left int, err error)) (entered int, err error) {
	done := make(chan error)
	go func() {
		// The thread is never unlocked, so it ends with this goroutine, and no other goroutine ever
		// runs in a pod's namespace.
		runtime.LockOSThread()
		home, err := os.Open(filepath.Join(procfs, "thread-self", "ns", "net"))
		if err != nil {
			done <- fmt.Errorf("open own network namespace: %w", err)
			return
		}
		defer home.Close()
		entered, err = visitAll(ctx, spaces, here)
		// Return to our own namespace all the same: the runtime never ends the main thread, and
		// /proc/PID shows its namespace as that of the process.
		done <- errors.Join(err, unix.Setns(int(home.Fd()), unix.CLONE_NEWNET))
	}()
	err = <-done
	return entered, err
}

// visitAll is visit on a thread that can change its namespace.
func visitAll(ctx context.Context, spaces []namespace, here func() (left int, err error)) (entered int, err error) {
	var errs []error
	for _, s := range spaces {
		if err := ctx.Err(); err != nil {
			return entered, errors.Join(append(errs, err)...)
		}
		ok, err := s.enter()
		if !ok {
			errs = append(errs, err)
			continue
		}
		entered++
		left, err := here()
		if err == nil && left == 0 {
			break
		}
		if err != nil {
			errs = append(errs, fmt.Errorf("network namespace %d: %w", s.inode, err))
		}
	}
	return entered, errors.Join(errs...)
}

// enter moves the calling thread into the namespace. It is no error if the namespace is gone.
func (s namespace) enter() (ok bool, err error) {
	for _, path := range s.paths {
		f, err := os.Open(path)
		if err != nil {
			continue // the process has ended; another one may be in the namespace
		}
		err = unix.Setns(int(f.Fd()), unix.CLONE_NEWNET)
		f.Close()
		switch {
		case err == nil:
			return true, nil
		case errors.Is(err, unix.EINVAL): // it was unmounted: the path is a plain file now
			continue
		}
		return false, fmt.Errorf("enter network namespace %d (%s): %w; run as root, or with the capability SYS_ADMIN", s.inode, path, err)
	}
	return false, nil
}
