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

// namespace is a network namespace and where it can be opened: at the processes that live in it, which
// come and go, and where it is mounted.
type namespace struct {
	inode uint64
	paths []string
}

// namespaces lists the network namespaces of the machine: those of processes and those that are mounted
// (as `ip netns` and container runtimes do). One that is held by a file descriptor alone is not found.
// The error tells what could not be read; the list is good without it.
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
	// The mounts of the machine, and our own, which are others in a container.
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
		if errors.Is(err, fs.ErrPermission) {
			denied++
		}
		if inode, ok := inodeOf(name); err == nil && ok { // else the process has ended
			add(inode, path)
		}
	}
	if denied > 0 {
		return fmt.Errorf("the network namespaces of %d of %d processes may not be read: run as root, or with the capability SYS_PTRACE", denied, total)
	}
	return nil
}

// ofMounts adds the namespaces that are mounted as the process proc sees it.
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

// mounted reads mountinfo, proc_pid_mountinfo(5), for mounts of network namespaces.
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

// unescape undoes what the kernel does to mount points.
var unescape = strings.NewReplacer(`\040`, " ", `\011`, "\t", `\012`, "\n", `\134`, `\`)

// inodeOf reads the name of a network namespace, net:[4026531840].
func inodeOf(name string) (uint64, bool) {
	number, ok := strings.CutPrefix(name, "net:[")
	if !ok {
		return 0, false
	}
	inode, err := strconv.ParseUint(strings.TrimSuffix(number, "]"), 10, 64)
	return inode, err == nil
}

// visit calls here in one namespace after the other until nothing is left, and returns how many it was in.
// What cannot be done in one namespace does not hold up the others.
func visit(ctx context.Context, procfs string, spaces []namespace, here func() (left int, err error)) (entered int, err error) {
	done := make(chan error)
	go func() {
		// Never unlocked: the thread ends with this goroutine and no other ever runs in a pod's namespace.
		runtime.LockOSThread()
		home, err := os.Open(filepath.Join(procfs, "thread-self", "ns", "net"))
		if err != nil {
			done <- fmt.Errorf("open own network namespace: %w", err)
			return
		}
		defer home.Close()
		entered, err = visitAll(ctx, spaces, here)
		// The runtime keeps the main thread for ever, and /proc/PID shows its namespace as the process's.
		done <- errors.Join(err, unix.Setns(int(home.Fd()), unix.CLONE_NEWNET))
	}()
	err = <-done
	return entered, err
}

// visitAll is visit on a thread that may be moved about.
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

// enter moves the calling thread into the namespace. A namespace that is no more is no error.
func (s namespace) enter() (ok bool, err error) {
	for _, path := range s.paths {
		f, err := os.Open(path)
		if err != nil {
			continue // the process has ended; another may be in there
		}
		err = unix.Setns(int(f.Fd()), unix.CLONE_NEWNET)
		f.Close()
		switch {
		case err == nil:
			return true, nil
		case errors.Is(err, unix.EINVAL): // unmounted: a plain file
			continue
		}
		return false, fmt.Errorf("enter network namespace %d (%s): %w: run as root, or with the capability SYS_ADMIN", s.inode, path, err)
	}
	return false, nil
}
