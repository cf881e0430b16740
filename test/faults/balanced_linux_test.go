package faults

import (
	"errors"
	"fmt"
	"io/fs"
	"net/netip"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/cilium/ebpf"
	"github.com/cilium/ebpf/link"

	"strait.io/strait/datapath/socklb/inspect"
	"strait.io/strait/datapath/socklb/layout"
	"strait.io/strait/internal/testutil"
)

// balanced is a machine with a Service of one pod, and another pod that calls it through the load balancer
// all the time.
type balanced struct {
	*machine
	life *process
	pod  *pod
	vip  netip.AddrPort
	// wanted is what bpffs, hooks and maps held once calls worked.
	wanted string
	calls  caller
	// stirred counts the calls of stir.
	stirred int
}

// caller counts the calls of a pod, and those that failed.
type caller struct {
	made, failed atomic.Int64
	mu           sync.Mutex
	last         error // the last failure
}

func (c *caller) count(err error) {
	c.made.Add(1)
	if err != nil {
		c.failed.Add(1)
		c.mu.Lock()
		c.last = err
		c.mu.Unlock()
	}
}

func newBalanced(t *testing.T) *balanced {
	t.Helper()
	m := newMachine(t)
	m.echo(t, pods{ready: a})
	w := &balanced{machine: m, life: m.start(t), pod: m.newPod(t, podA, podB)}
	w.vip = m.leadsTo(t, a)
	testutil.Eventually(t, patience, w.call)
	w.wanted = w.holdings()
	stop, done := make(chan struct{}), make(chan struct{})
	go func() {
		defer close(done)
		for {
			select {
			case <-stop:
				return
			case <-time.After(5 * time.Millisecond):
				w.calls.count(w.call())
			}
		}
	}()
	t.Cleanup(func() {
		close(stop)
		<-done
	})
	return w
}

func (w *balanced) call() error { return w.reaches(podA) }

// reaches is nil if the Service leads to the pod.
func (w *balanced) reaches(want netip.AddrPort) error {
	s := socket{pod: w.pod}
	if err := w.pod.rpc.Call("Sockets.Open", w.vip, &s.fd); err != nil {
		return fmt.Errorf("connect: %w", err)
	}
	answer := s.ask()
	if err := w.pod.rpc.Call("Sockets.Close", s.fd, nil); err != nil {
		return err
	}
	if answer != want.String() {
		return fmt.Errorf("the Service answers %q, want %s", answer, want)
	}
	return nil
}

func (w *balanced) at(name string) string { return filepath.Join(w.pins(), name) }

func (w *balanced) mapAt(name string) string {
	return w.at(filepath.Join(layout.Dir(layout.Number), name))
}

func (w *balanced) linkAt(name string) string { return w.at(filepath.Join(layout.LinksDir, name)) }

// everyPin lists all pins and symbolic links, by their names below the directory of pins.
func (w *balanced) everyPin() (names []string) {
	_ = filepath.WalkDir(w.pins(), func(path string, d fs.DirEntry, err error) error {
		if err == nil && !d.IsDir() {
			names = append(names, strings.TrimPrefix(path, w.pins()+"/"))
		}
		return nil
	})
	return names
}

// holdings is what the kernel holds for the load balancer, without what only programs write, and without
// places in maps, which are free to change.
func (w *balanced) holdings() string {
	var text strings.Builder
	for _, name := range w.everyPin() {
		info, err := os.Lstat(w.at(name))
		if err != nil {
			continue // the daemon is at work: the next look shows it
		}
		target, _ := os.Readlink(w.at(name))
		fmt.Fprintln(&text, name, info.Mode(), target)
	}
	for _, h := range layout.Hooks {
		fmt.Fprintln(&text, "hook", h.Name, w.attached(h.Name))
	}
	fs, err := inspect.Read(w.pins())
	fmt.Fprintln(&text, "frontends", fs, err)
	for _, name := range []string{layout.MapAddresses, layout.MapAddressSieve, layout.MapOptOuts, layout.MapOptOutLevels} {
		fmt.Fprintln(&text, name, w.content(name))
	}
	return text.String()
}

// attached says whether the pinned link of a hook holds strait's program on the machine's cgroup.
func (w *balanced) attached(hook string) string {
	l, err := link.LoadPinnedLink(w.linkAt(hook), nil)
	if err != nil {
		return err.Error()
	}
	defer l.Close()
	info, err := l.Info()
	if err != nil {
		return err.Error()
	}
	cgroup, err := os.Stat(w.cgroup)
	if err != nil {
		return err.Error()
	}
	p, err := ebpf.NewProgramFromID(info.Program)
	if err != nil {
		return err.Error()
	}
	defer p.Close()
	about, err := p.Info()
	if err != nil {
		return err.Error()
	}
	return fmt.Sprint(info.Cgroup() != nil && info.Cgroup().CgroupId == inode(cgroup), " ", about.Name)
}

// content is what a map holds, sorted.
func (w *balanced) content(name string) string {
	m, err := layout.Open(w.pins(), name, nil)
	if err != nil {
		return err.Error()
	}
	defer m.Close()
	var rows []string
	key, value := make([]byte, m.KeySize()), make([]byte, m.ValueSize())
	it := m.Iterate()
	for it.Next(&key, &value) {
		rows = append(rows, strings.Trim(fmt.Sprintf("%x=%x", key, value), "0"))
	}
	slices.Sort(rows)
	return fmt.Sprint(rows, it.Err())
}

// asWanted is nil if all is as it was, and a call gets through.
func (w *balanced) asWanted() error {
	now, wanted := strings.Split(w.holdings(), "\n"), strings.Split(w.wanted, "\n")
	without := func(lines, others []string) string {
		return strings.Join(slices.DeleteFunc(slices.Clone(lines), func(l string) bool { return slices.Contains(others, l) }), "\n")
	}
	if !slices.Equal(now, wanted) {
		return fmt.Errorf("the kernel holds\n%s\ninstead of\n%s", without(now, wanted), without(wanted, now))
	}
	return w.call()
}

// obeys checks that what the daemon writes is what programs read, and what others see under the pins.
func (w *balanced) obeys(t *testing.T) {
	t.Helper()
	w.echo(t, pods{ready: b})
	w.leadsTo(t, b)
	testutil.Eventually(t, patience, func() error { return w.reaches(podB) })
	w.echo(t, pods{ready: a})
	w.leadsTo(t, a)
	testutil.Eventually(t, patience, w.asWanted)
}

// spoilt is one thing that another program does to the load balancer.
type spoilt struct {
	name string
	do   func(w *balanced) error
	// breaks: calls fail until it is mended. Otherwise none may fail.
	breaks bool
	says   []string // what a line of the log or the status has
}

// heals spoils something, and waits until all is as it was.
func (w *balanced) heals(t *testing.T, s spoilt) {
	t.Helper()
	failed := w.calls.failed.Load()
	if err := s.do(w); err != nil {
		t.Fatal(err)
	}
	begin := time.Now()
	testutil.Eventually(t, healing, w.asWanted)
	took := time.Since(begin).Round(time.Millisecond)
	if s.says != nil {
		w.life.says(t, s.says...)
	}
	failed = w.calls.failed.Load() - failed
	t.Logf("as wanted after %v, %d calls failed", took, failed)
	if failed > 0 && !s.breaks {
		w.calls.mu.Lock()
		defer w.calls.mu.Unlock()
		t.Errorf("%d calls failed, the last with: %v", failed, w.calls.last)
	}
	failed = w.calls.failed.Load()
	time.Sleep(50 * time.Millisecond)
	if more := w.calls.failed.Load() - failed; more > 1 { // one may have been under way
		t.Errorf("%d calls failed after all was as wanted", more)
	}
}

// each does something to every one of the names.
func each(names []string, do func(name string) error) error {
	var errs []error
	for _, name := range names {
		if err := do(name); err != nil {
			errs = append(errs, fmt.Errorf("%s: %w", name, err))
		}
	}
	return errors.Join(errs...)
}
