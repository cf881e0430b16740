package socklb

import (
	"encoding/binary"
	"errors"
	"fmt"
	"maps"
	"os"
	"slices"

	"github.com/cilium/ebpf"
	"golang.org/x/sys/unix"
)

// Who wants a cgroup to be left alone: bits of optout.By. It is as long as anybody does.
const (
	byDaemon   = 1
	byOperator = 2
)

// maxLevels is MAX_LEVELS of bpf/lib/config.h.
const maxLevels = 32

// SetOptOut makes cgroups (paths) and those below them the ones whose new connections are left alone, besides
// those that AddOptOut named. One that cannot be found is an error, and the others are not held up.
func (l *LB) SetOptOut(cgroups []string) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.table == nil {
		return errClosed
	}
	t, err := openTree()
	if err != nil {
		return fmt.Errorf("set opt-outs: %w", err)
	}
	defer t.close()
	var errs []error
	want := map[uint64]uint32{}
	for _, path := range cgroups {
		id, level, err := t.find(path)
		if err != nil {
			errs = append(errs, fmt.Errorf("opt out %w", err))
			continue
		}
		want[id] = level
	}
	err = changeOptOuts(l.pins.dir, t, func(have optOuts) {
		have.drop(byDaemon)
		for id, level := range want {
			have.add(id, level, byDaemon)
		}
	})
	return errors.Join(append(errs, err)...)
}

// OptOuts lists the cgroups that opted out, by path, sorted. It needs no daemon. One that was removed is not
// listed: it is nobody's, and the next change forgets it.
func OptOuts(pins string) ([]string, error) {
	t, err := openTree()
	if err != nil {
		return nil, fmt.Errorf("list opt-outs: %w", err)
	}
	defer t.close()
	m, err := openPin(pins, socklbMapOptouts, &ebpf.LoadPinOptions{ReadOnly: true})
	if err != nil {
		return nil, fmt.Errorf("list opt-outs: %w", err)
	}
	defer m.Close()
	ids := map[uint64]bool{}
	err = all(m, func(id uint64, _ socklbOptout) error {
		ids[id] = true
		return nil
	})
	if err != nil {
		return nil, fmt.Errorf("list opt-outs: %w", err)
	}
	paths, err := t.paths(ids)
	if err != nil {
		return nil, fmt.Errorf("list opt-outs: %w", err)
	}
	return paths, nil
}

// AddOptOut leaves the new connections of a cgroup's processes alone, and those of the cgroups below it. It
// needs no daemon and outlives it, until RemoveOptOut.
func AddOptOut(pins, cgroup string) error {
	return changeOne(pins, cgroup, "add opt-out", func(have optOuts, id uint64, level uint32) error {
		have.add(id, level, byOperator)
		return nil
	})
}

// RemoveOptOut undoes AddOptOut. It is an error if the cgroup has not opted out, or did so by the daemon's
// configuration.
func RemoveOptOut(pins, cgroup string) error {
	return changeOne(pins, cgroup, "remove opt-out", func(have optOuts, id uint64, _ uint32) error {
		switch o := have[id]; {
		case o.By == byDaemon:
			return fmt.Errorf("cgroup %s opted out by what the daemon was told (a pod's annotation, or its configuration): change it there", cgroup)
		case o.By == 0:
			return fmt.Errorf("cgroup %s has not opted out", cgroup)
		default:
			have.set(id, o.Level, o.By&^byOperator)
		}
		return nil
	})
}

func changeOne(pins, cgroup, verb string, change func(have optOuts, id uint64, level uint32) error) error {
	t, err := openTree()
	if err != nil {
		return fmt.Errorf("%s: %w", verb, err)
	}
	defer t.close()
	id, level, err := t.find(cgroup)
	if err != nil {
		return fmt.Errorf("%s: %w", verb, err)
	}
	var refused error
	err = changeOptOuts(pins, t, func(have optOuts) { refused = change(have, id, level) })
	if err = errors.Join(err, refused); err != nil {
		return fmt.Errorf("%s: %w", verb, err)
	}
	return nil
}

// optOuts is what the map holds, by cgroup id.
type optOuts map[uint64]socklbOptout

func (o optOuts) set(id uint64, level, by uint32) {
	if by == 0 {
		delete(o, id)
		return
	}
	o[id] = socklbOptout{Level: level, By: by}
}

func (o optOuts) add(id uint64, level, by uint32) { o.set(id, level, o[id].By|by) }

// drop takes back what one party wants.
func (o optOuts) drop(by uint32) {
	for id, e := range o {
		o.set(id, e.Level, e.By&^by)
	}
}

// sieve lets through each of the cgroups; see struct optout_sieve.
func (o optOuts) sieve() (s socklbOptoutSieve) {
	for id, e := range o {
		s.Levels |= 1 << e.Level
		bit := sieveBit(id)
		s.Bits[bit/64] |= 1 << (bit % 64)
	}
	return s
}

// sieveBit is the hash of bpf/lib/optout.h.
func sieveBit(cgroup uint64) uint64 { return cgroup * 0x9e3779b97f4a7c15 >> (64 - 12) }

// with are the cgroups of both, as far as sieves are concerned.
func (o optOuts) with(more optOuts) optOuts {
	both := maps.Clone(o)
	maps.Copy(both, more)
	return both
}

// changeOptOuts reads what the map holds, lets change change it, and writes the difference. The daemon and any
// number of commands do so at the same time.
func changeOptOuts(pins string, t *tree, change func(have optOuts)) error {
	lock, err := lockDir(mapsDir(pins, layout), unix.LOCK_EX)
	if err != nil {
		return fmt.Errorf("pins %s: %w", pins, err)
	}
	defer lock.Close()
	entries, err := openPin(pins, socklbMapOptouts, nil)
	if err != nil {
		return err
	}
	defer entries.Close()
	levels, err := openPin(pins, socklbMapOptoutLevels, nil)
	if err != nil {
		return err
	}
	defer levels.Close()
	have := optOuts{}
	err = all(entries, func(id uint64, e socklbOptout) error {
		have[id] = e
		return nil
	})
	if err != nil {
		return err
	}
	want := maps.Clone(have)
	change(want)
	for id := range want { // a cgroup's id is never given to another
		if _, err := t.path(id); errors.Is(err, unix.ESTALE) {
			delete(want, id)
		}
	}
	return writeOptOuts(entries, levels, have, want)
}

// writeOptOuts: the sieve lets a cgroup through for as long as there is an entry of it, so that no entry is ever
// there and not found. A sieve is not written as one, but a bit that is set before and after is set throughout.
// Removals first make room.
func writeOptOuts(entries, levels *ebpf.Map, have, want optOuts) error {
	if maps.Equal(have, want) {
		return putSieve(levels, want)
	}
	if err := putSieve(levels, have.with(want)); err != nil {
		return err
	}
	var errs []error
	for id := range have {
		if _, ok := want[id]; ok {
			continue
		}
		if err := entries.Delete(id); err != nil && !errors.Is(err, ebpf.ErrKeyNotExist) {
			errs = append(errs, fmt.Errorf("delete from map %s: %w", socklbMapOptouts, err))
			want[id] = have[id]
		}
	}
	for id, e := range want {
		if have[id] == e {
			continue
		}
		err := entries.Put(id, e)
		if errors.Is(err, unix.E2BIG) {
			err = fmt.Errorf("map %s holds %d cgroups and takes no more; raise maxOptOuts", socklbMapOptouts, entries.MaxEntries())
		}
		if err != nil {
			errs = append(errs, fmt.Errorf("cgroup %d: %w", id, err))
			delete(want, id)
		}
	}
	return errors.Join(append(errs, putSieve(levels, want))...)
}

func putSieve(m *ebpf.Map, of optOuts) error {
	if err := m.Put(uint32(0), of.sieve()); err != nil {
		return fmt.Errorf("write map %s: %w", socklbMapOptoutLevels, err)
	}
	return nil
}

// tree is the machine's cgroup v2 tree, as far as this process sees it.
type tree struct {
	root   *os.File          // of a mount that shows all of it; nil if there is none
	levels map[uint64]uint32 // by id, of the cgroups whose depth is known
}

func openTree() (*tree, error) {
	mount, err := cgroupMount()
	if err != nil {
		return nil, err
	}
	t := &tree{levels: map[uint64]uint32{rootInode: 0}}
	if id, err := inode(mount); err == nil && id == rootInode {
		t.root, err = os.Open(mount)
		return t, err
	}
	own, err := ownLevels()
	if err != nil && !errors.Is(err, errNoAncestors) { // without them, climb says what to mount
		return nil, err
	}
	maps.Copy(t.levels, own)
	return t, nil
}

func (t *tree) close() {
	if t.root != nil {
		t.root.Close()
	}
}

// find returns the id and the depth of the cgroup at path, which may be on any mount.
func (t *tree) find(path string) (id uint64, level uint32, err error) {
	var fs unix.Statfs_t
	if err := unix.Statfs(path, &fs); err != nil {
		return 0, 0, fmt.Errorf("cgroup %s: %w; name an existing cgroup v2 directory", path, err)
	}
	if int64(fs.Type) != unix.CGROUP2_SUPER_MAGIC {
		return 0, 0, fmt.Errorf("cgroup %s is not cgroup v2; name a directory of the cgroup2 mount", path)
	}
	if id, err = inode(path); err != nil {
		return 0, 0, fmt.Errorf("cgroup %s: %w", path, err)
	}
	at, err := t.path(id)
	if err != nil { // no right to open by id, or no mount that shows all
		at = path
	}
	if level, err = climb(at, t.levels); err != nil {
		return 0, 0, fmt.Errorf("cgroup %s: %w", path, err)
	}
	switch {
	case level == 0:
		return 0, 0, fmt.Errorf("cgroup %s is the root: that would opt out everybody; stop the daemon and clean up instead", path)
	case level >= maxLevels:
		return 0, 0, fmt.Errorf("cgroup %s is %d deep: only the first %d levels of the tree can opt out", path, level, maxLevels-1)
	}
	return id, level, nil
}

// fileIDKernfs is FILEID_KERNFS of linux/exportfs.h: a handle that holds the id.
const fileIDKernfs = 0xfe

// path finds a cgroup by its id; ESTALE if it was removed, another error if that cannot be found out.
func (t *tree) path(id uint64) (string, error) {
	if t.root == nil {
		return "", fmt.Errorf("find cgroup %d: no mount shows the machine's whole tree", id)
	}
	handle := unix.NewFileHandle(fileIDKernfs, binary.NativeEndian.AppendUint64(nil, id))
	fd, err := unix.OpenByHandleAt(int(t.root.Fd()), handle, unix.O_PATH|unix.O_CLOEXEC)
	if err != nil {
		return "", fmt.Errorf("find cgroup %d: %w", id, err)
	}
	defer unix.Close(fd)
	return os.Readlink(fmt.Sprintf("/proc/self/fd/%d", fd))
}

// paths finds cgroups by their ids, sorted; those that were removed, or cannot be seen from here, are missing.
func (t *tree) paths(ids map[uint64]bool) ([]string, error) {
	out, unseen := []string{}, map[uint64]bool{}
	for id := range ids {
		path, err := t.path(id)
		switch {
		case err == nil:
			out = append(out, path)
		case !errors.Is(err, unix.ESTALE):
			unseen[id] = true
		}
	}
	if len(unseen) > 0 {
		found, err := search(unseen)
		if err != nil {
			return nil, fmt.Errorf("find cgroups: %w", err)
		}
		out = slices.AppendSeq(out, maps.Values(found))
	}
	slices.Sort(out)
	return out, nil
}
