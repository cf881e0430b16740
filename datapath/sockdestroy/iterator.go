package sockdestroy

import (
	"errors"
	"fmt"
	"io"

	"github.com/cilium/ebpf"
	"github.com/cilium/ebpf/link"
	"github.com/cilium/ebpf/rlimit"
	"golang.org/x/sys/unix"

	"strait.io/strait/internal/l4"
)

// maxTargets is the size of the map `targets`: MAX_TARGETS in ../../bpf/sockdestroy.bpf.c.
const maxTargets = 16384

// iterator is the method that walks the sockets inside the kernel.
type iterator struct {
	objects sockdestroyObjects
	links   map[l4.Proto]*link.Iter
	targets []Target
}

// newIterator loads the programs. The error satisfies errors.Is(err, ebpf.ErrNotSupported) if the
// kernel is older than 6.5.
func newIterator() (*iterator, error) {
	// Before Linux 5.11 maps count against RLIMIT_MEMLOCK, and the error for exceeding it would
	// hide what the kernel lacks.
	if err := rlimit.RemoveMemlock(); err != nil {
		return nil, fmt.Errorf("load socket iterators: %w", err)
	}
	i := &iterator{links: map[l4.Proto]*link.Iter{}}
	if err := loadSockdestroyObjects(&i.objects, nil); err != nil {
		return nil, fmt.Errorf("load socket iterators: %w", err)
	}
	for proto, p := range map[l4.Proto]*ebpf.Program{l4.UDP: i.objects.DestroyUdp, l4.TCP: i.objects.DestroyTcp} {
		it, err := link.AttachIter(link.IterOptions{Program: p})
		if err != nil {
			return nil, errors.Join(fmt.Errorf("attach iterator of %s sockets: %w", proto, err), i.close())
		}
		i.links[proto] = it
	}
	return i, nil
}

func (i *iterator) close() error {
	var errs []error
	for _, l := range i.links {
		errs = append(errs, l.Close())
	}
	return errors.Join(append(errs, i.objects.Close())...)
}

func (i *iterator) begin(targets []Target) error {
	keys, values := make([]uint64, len(targets)), make([]sockdestroyTarget, len(targets))
	for n, t := range targets {
		keys[n], values[n] = t.Cookie, targetOf(t)
	}
	if _, err := i.objects.Targets.BatchUpdate(keys, values, nil); err != nil {
		return errors.Join(fmt.Errorf("write map targets: %w", err), i.empty(keys))
	}
	if err := i.objects.Decided.Set(uint32(0)); err != nil {
		return errors.Join(fmt.Errorf("reset the number of verdicts: %w", err), i.empty(keys))
	}
	i.targets = targets
	return nil
}

func (i *iterator) here() (left int, err error) {
	for _, proto := range protocols(i.targets) {
		if err := run(i.links[proto]); err != nil {
			return 0, fmt.Errorf("iterate over %s sockets: %w", proto, err)
		}
	}
	var decided uint32
	if err := i.objects.Decided.Get(&decided); err != nil {
		return 0, fmt.Errorf("read the number of verdicts: %w", err)
	}
	return len(i.targets) - int(decided), nil
}

// run iterates over the sockets of the thread's namespace, which the kernel determines when the
// iterator is opened.
func run(it *link.Iter) error {
	r, err := it.Open()
	if err != nil {
		return err
	}
	defer r.Close()
	var b [64]byte // the programs print nothing
	for {
		_, err := r.Read(b[:])
		switch {
		case errors.Is(err, io.EOF):
			return nil
		case errors.Is(err, unix.EAGAIN): // the kernel pauses after a million sockets
		case err != nil:
			return err
		}
	}
}

func (i *iterator) end() (map[uint64]outcome, error) {
	out := make(map[uint64]outcome, len(i.targets))
	keys := make([]uint64, 0, len(i.targets))
	var cookie uint64
	var t sockdestroyTarget
	it := i.objects.Targets.Iterate()
	for it.Next(&cookie, &t) {
		keys = append(keys, cookie)
		o := outcome{verdict: verdict(t.Verdict)}
		if o.verdict == refused {
			o.err = fmt.Errorf("destroy socket %d: %w", cookie, unix.Errno(-t.Error))
		}
		out[cookie] = o
	}
	err := it.Err()
	if err != nil {
		err = fmt.Errorf("read map targets: %w", err)
	}
	i.targets = nil
	return out, errors.Join(err, i.empty(keys))
}

func (i *iterator) empty(keys []uint64) error {
	if len(keys) == 0 {
		return nil
	}
	if _, err := i.objects.Targets.BatchDelete(keys, nil); err != nil && !errors.Is(err, ebpf.ErrKeyNotExist) {
		return fmt.Errorf("empty map targets: %w", err)
	}
	return nil
}

func targetOf(t Target) sockdestroyTarget {
	p := t.Peer.Port()
	return sockdestroyTarget{Addr: t.Peer.Addr().As16(), Port: p<<8 | p>>8, Proto: uint8(t.Proto)}
}

// protocols returns the protocols of the targets.
func protocols(targets []Target) (out []l4.Proto) {
	for _, proto := range []l4.Proto{l4.UDP, l4.TCP} {
		for _, t := range targets {
			if t.Proto == proto {
				out = append(out, proto)
				break
			}
		}
	}
	return out
}
