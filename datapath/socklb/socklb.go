package socklb

import (
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"sync/atomic"

	"github.com/cilium/ebpf"
	"github.com/cilium/ebpf/rlimit"
	"golang.org/x/sys/unix"

	"strait.io/strait/datapath"
	"strait.io/strait/datapath/socklb/cgroup"
	"strait.io/strait/datapath/socklb/inspect"
	"strait.io/strait/datapath/socklb/layout"
	"strait.io/strait/datapath/socklb/optout"
	"strait.io/strait/internal/problem"
)

// LB is a loaded and attached load balancer. Its methods are safe for concurrent use.
type LB struct {
	cgroup   cgroup.Dir
	below    bool // see Config.BelowRoot
	features []datapath.Feature
	log      *slog.Logger

	mu      sync.Mutex
	pins    *pins
	maps    *layout.Maps
	objects objects
	forget  *ebpf.Program
	kernel  *bpfKernel
	table   *table

	// used is the usage of the table's maps after the last Reconcile.
	used atomic.Pointer[[]datapath.MapUsage]

	// reading keeps Close from releasing the maps while they are read. Reads take long and do not
	// need mu.
	reading sync.RWMutex
	reader  *inspect.Reader
}

// Open loads the programs and attaches them. If there are pins already, it keeps using their maps
// with everything that they hold, and replaces the programs in place. Otherwise it makes a new set
// of pins, whole or not at all.
func Open(cfg Config) (*LB, error) {
	if err := cfg.Validate(); err != nil {
		return nil, fmt.Errorf("socket load balancer: %w", err)
	}
	l, err := open(cfg.withDefaults())
	if err != nil {
		return nil, fmt.Errorf("open socket load balancer: %w", err)
	}
	return l, nil
}

func open(cfg Config) (*LB, error) {
	if err := permitted(); err != nil {
		return nil, err
	}
	cg, err := cgroup.Open(cfg.Cgroup, cfg.AllowVirtualRoot)
	if err != nil {
		return nil, err
	}
	if err := checkBPFFS(cfg.Pins); err != nil {
		return nil, err
	}
	if err := rlimit.RemoveMemlock(); err != nil {
		return nil, layout.Explain(err)
	}
	fs, err := probe()
	if err == nil {
		err = required(fs)
	}
	if err != nil {
		return nil, err
	}
	parent, err := layout.Lock(filepath.Dir(cfg.Pins), unix.LOCK_EX)
	if err != nil {
		return nil, fmt.Errorf("pins %s: %w", cfg.Pins, err)
	}
	defer parent.Close()
	l := &LB{cgroup: cg, below: cfg.BelowRoot, features: fs, log: cfg.Log}
	if err := l.load(cfg); err != nil {
		return nil, errors.Join(err, l.Close())
	}
	return l, nil
}

// load makes new pins, or upgrades existing ones to this program's layout and uses them. It then
// restores the table from what the maps hold.
func (l *LB) load(cfg Config) error {
	if err := sweepHalfMade(cfg.Pins); err != nil {
		return fmt.Errorf("remove half-made pins: %w", err)
	}
	found, err := layout.Found(cfg.Pins)
	if err != nil {
		return err
	}
	if len(found) == 0 {
		if err = l.create(cfg); err == nil {
			l.pins, err = lockOwn(cfg.Pins)
		}
	} else if l.pins, err = lockOwn(cfg.Pins); err == nil {
		if err = tighten(cfg.Pins); err != nil {
			return fmt.Errorf("close pins to others than root: %w", err)
		}
		err = l.goOn(cfg, found)
	}
	if err != nil {
		return err
	}
	if err := l.objects.hold(cfg.Pins, has(l.features, featureLists.Name), l.below); err != nil {
		return err
	}
	if _, err := l.mendBelow(); err != nil {
		l.log.Warn("not all programs are attached where those of others come first: trying again", "err", err) // Mend does
	}
	if l.kernel, err = newBPFKernel(l.maps); err != nil {
		return err
	}
	if err := l.restore(len(found) == 0); err != nil {
		return err
	}
	reader, err := inspect.OpenOn(cfg.Pins, l.kernel.sets, l.kernel.slots)
	l.reading.Lock()
	defer l.reading.Unlock()
	l.reader = reader
	return err
}

// create makes new pins, with empty maps.
func (l *LB) create(cfg Config) error {
	spec, err := l.spec(cfg)
	if err != nil {
		return err
	}
	c, err := loadCollection(spec, nil)
	if err != nil {
		return loadError(err)
	}
	defer c.Close()
	return create(cfg.Pins, func(tmp string) error {
		if err := pinMaps(filepath.Join(tmp, layout.Dir(layout.Number)), pinned(c.Maps)); err != nil {
			return err
		}
		if err := showMaps(tmp, pinned(c.Maps)); err != nil {
			return err
		}
		if err := l.take(c); err != nil {
			return err
		}
		links := filepath.Join(tmp, layout.LinksDir)
		if err := l.list(links); err != nil {
			return err
		}
		return attachAll(c.Programs, links, l.target(l.cgroup), cfg.step)
	}, removeAll)
}

// reuse keeps using the pinned maps of this layout and puts this program's code on the hooks.
func (l *LB) reuse(cfg Config) error {
	spec, err := l.spec(cfg)
	if err != nil {
		return err
	}
	configured := map[string]uint32{}
	for name, m := range pinned(spec.Maps) {
		configured[name] = m.MaxEntries
	}
	old, err := loadMaps(layout.MapsDir(cfg.Pins, layout.Number), pinned(spec.Maps))
	if err != nil {
		return err
	}
	defer closeMaps(old)
	for name, m := range old {
		if m.MaxEntries() != configured[name] {
			l.log.Warn("pinned map keeps its size; clean up and start again to get the configured size",
				"map", name, "size", m.MaxEntries(), "configured", configured[name])
		}
	}
	if err := l.constants(spec, old[layout.MapSockets].MaxEntries()); err != nil {
		return err
	}
	c, err := loadCollection(spec, old)
	if err != nil {
		return loadError(err)
	}
	defer c.Close()
	if err := l.take(c); err != nil {
		return err
	}
	links := filepath.Join(cfg.Pins, layout.LinksDir)
	if err := l.list(links); err != nil {
		return err
	}
	if err := attachAll(c.Programs, links, l.target(l.cgroup), cfg.step); err != nil {
		return err
	}
	return showMaps(cfg.Pins, old)
}

// target returns how programs are attached to a cgroup on this kernel.
func (l *LB) target(cg cgroup.Dir) target { return target{cg, has(l.features, featureFirst), l.below} }

// list pins the lists of records and notes whether the kernel can list them.
func (l *LB) list(links string) error {
	ok, err := pinLists(links, l.maps)
	f := featureLists
	f.OK = ok
	l.features = append(slices.DeleteFunc(l.features, func(g datapath.Feature) bool { return g.Name == f.Name }), f)
	return err
}

// take takes over the maps and programs of the collection.
func (l *LB) take(c *ebpf.Collection) (err error) {
	if l.maps != nil {
		l.maps.Close()
		l.forget.Close()
		l.objects.close()
	}
	l.maps, l.objects = &layout.Maps{}, newObjects()
	for _, h := range layout.Hooks {
		if l.objects.programs[h.Name], err = c.Programs[h.Program].Clone(); err != nil {
			return err
		}
	}
	l.objects.maps = pinned(c.Maps)
	if l.forget, err = c.Programs[layout.ProgForget].Clone(); err != nil {
		return err
	}
	return c.Assign(l.maps)
}

// spec returns the object with the sizes and constants for this machine.
func (l *LB) spec(cfg Config) (*ebpf.CollectionSpec, error) {
	spec, err := layout.Spec()
	if err != nil {
		return nil, err
	}
	for name, size := range map[string]uint32{
		layout.MapServices:         cfg.MaxFrontends,
		layout.MapSets:             cfg.MaxFrontends,
		layout.MapFrontendCounters: cfg.MaxFrontends,
		layout.MapBackends:         cfg.MaxBackends,
		layout.MapBackendCounters:  cfg.MaxBackends + 1, // number 0 means not counted
		layout.MapSockets:          cfg.MaxSockets,
		layout.MapSocketsMore:      1, // nothing writes it
		layout.MapAddresses:        cfg.MaxFrontends,
		layout.MapAffinities:       cfg.MaxAffinity,
		layout.MapOptOuts:          cfg.MaxOptOuts,
	} {
		spec.Maps[name].MaxEntries = size
	}
	return spec, l.constants(spec, cfg.MaxSockets)
}

func (l *LB) constants(spec *ebpf.CollectionSpec, sockets uint32) error {
	retval := uint8(0)
	if has(l.features, featureSetRetval) {
		retval = 1
	}
	mptcp := uint8(0)
	if has(l.features, featureMPTCP) {
		mptcp = 1
	}
	return errors.Join(spec.Variables[layout.VarSocketsMask].Set(sockets-1), spec.Variables[layout.VarHasSetRetval].Set(retval),
		spec.Variables[layout.VarHasMPTCPSock].Set(mptcp))
}

// pinned returns the maps that are pinned. It leaves out the maps of constants, which belong to one
// load of the programs.
func pinned[M any](all map[string]M) map[string]M {
	out := maps.Clone(all)
	maps.DeleteFunc(out, func(name string, _ M) bool { return strings.HasPrefix(name, ".") })
	return out
}

// loadError explains why maps and programs could not be loaded. It shows only the end of a
// verifier's log.
func loadError(err error) error {
	if ve := (*ebpf.VerifierError)(nil); errors.As(err, &ve) {
		return fmt.Errorf("kernel %s refuses the programs (please report this): %w", release(), err)
	}
	if errors.Is(err, unix.ENOMEM) || errors.Is(err, unix.E2BIG) {
		return fmt.Errorf("load maps and programs: %w; the kernel lacks the memory for maps of these sizes; "+
			"lower maxFrontends, maxBackends, maxSockets or maxAffinity", err)
	}
	return fmt.Errorf("load maps and programs: %w", layout.Explain(err))
}

// restore takes over the indexes and slots that the maps use. Those that no frontend refers to
// become free after a grace period, because the previous daemon can have died between two steps.
func (l *LB) restore(clean bool) error {
	have, err := l.kernel.read()
	if err := l.kernel.grace(); err != nil {
		return err
	}
	if err == nil {
		sizes := Config{MaxFrontends: l.maps.Sets.MaxEntries(), MaxBackends: l.maps.Backends.MaxEntries()}
		l.table, err = newTable(l.kernel, have, sizes, clean)
	}
	if err == nil {
		err = l.restoreOwn()
	}
	if err != nil {
		return fmt.Errorf("pins %s: %w; run `straitd cleanup`, then start again", l.pins.dir, err)
	}
	l.kernel.sweep(have)
	l.publishUsage()
	return nil
}

// restoreOwn takes over the own addresses, and the marks of all addresses in the maps.
func (l *LB) restoreOwn() error {
	own, err := l.kernel.own()
	if err != nil {
		return err
	}
	l.table.own.Prefixes = own.Prefixes
	for _, a := range own.Addrs {
		l.table.listed[a] = true
	}
	for a := range l.table.addresses() {
		l.kernel.mark(a)
	}
	l.kernel.keepMarks(l.table.addresses())
	return nil
}

// Reconcile makes the maps hold want. It first adds and updates frontends; then, if prune is set,
// it removes all others. A frontend flips to its new backends atomically. A frontend that is
// refused, or for which a map has no room, stays as it was and is reported as a Problem; the next
// Reconcile tries it again. An error means that working with the maps failed. The caller must not
// change want afterwards.
func (l *LB) Reconcile(want []datapath.Frontend, prune bool) ([]problem.Problem, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.table == nil {
		return nil, errClosed
	}
	problems, err := l.table.reconcile(want, prune)
	l.publishUsage()
	return problems, err
}

func (l *LB) publishUsage() {
	rows := l.table.usage()
	l.used.Store(&rows)
}

// SetOptOut sets the cgroups (paths) whose new connections are left alone, along with those of the
// cgroups below them; see optout.Set.
func (l *LB) SetOptOut(cgroups []string) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.table == nil {
		return errClosed
	}
	return optout.Set(l.pins.dir, cgroups)
}

// KeepOptOut writes the maps of opt-outs so that what is in force is what is listed, and forgets
// cgroups that are gone; see optout.Keep.
func (l *LB) KeepOptOut() error {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.table == nil {
		return errClosed
	}
	return optout.Keep(l.pins.dir)
}

// Frontends returns Reader.Frontends of this balancer's maps. It does not wait for a Reconcile.
func (l *LB) Frontends() (have []datapath.Frontend, err error) {
	err = l.Look(func(r *inspect.Reader) (err error) {
		have, err = r.Frontends()
		return err
	})
	return have, err
}

// Look calls look with a Reader of this balancer's maps. It does not wait for a Reconcile; only
// Close waits, until look returns.
func (l *LB) Look(look func(*inspect.Reader) error) error {
	l.reading.RLock()
	defer l.reading.RUnlock()
	if l.reader == nil {
		return errClosed
	}
	return look(l.reader)
}

var errClosed = errors.New("socket load balancer is closed")

// Features returns what the kernel answered to the probes of Open.
func (l *LB) Features() []datapath.Feature { return l.features }

// Pins returns the directory that holds the maps.
func (l *LB) Pins() string { return l.pins.dir }

// Cgroup returns the directory of the cgroup whose sockets are served.
func (l *LB) Cgroup() string { return l.cgroup.Path }

// Close releases the maps. The pins stay, and traffic continues unchanged.
func (l *LB) Close() error {
	l.reading.Lock()
	if l.reader != nil {
		l.reader.Close()
		l.reader = nil
	}
	l.reading.Unlock()
	l.mu.Lock()
	defer l.mu.Unlock()
	var errs []error
	if l.kernel != nil {
		errs = append(errs, l.kernel.close())
	}
	if l.maps != nil {
		errs = append(errs, l.maps.Close(), l.forget.Close(), l.objects.close())
	}
	if l.pins != nil {
		errs = append(errs, l.pins.close())
		l.pins.lock = nil
	}
	l.kernel, l.maps, l.forget, l.table, l.objects = nil, nil, nil, nil, objects{}
	return errors.Join(errs...)
}

// CleanUp detaches the programs and removes every pin; it succeeds if there are none. Existing
// connections continue, but getpeername() and unconnected UDP show their backends from now on.
func CleanUp(cfg Config) error {
	if err := cfg.Validate(); err != nil {
		return fmt.Errorf("clean up socket load balancer: %w", err)
	}
	if err := cleanUp(filepath.Clean(cfg.Pins)); err != nil {
		return fmt.Errorf("clean up socket load balancer: %w", err)
	}
	return nil
}

func cleanUp(dir string) error {
	parent, err := layout.Lock(filepath.Dir(dir), unix.LOCK_EX)
	if errors.Is(err, unix.ENOENT) {
		return nil
	}
	if err != nil {
		return err
	}
	defer parent.Close()
	if err := sweepHalfMade(dir); err != nil {
		return err
	}
	if _, err := layout.Found(dir); err != nil {
		return err
	}
	p, err := lockOwn(dir)
	if errors.Is(err, unix.ENOENT) {
		return nil
	}
	if err != nil {
		return err
	}
	return errors.Join(removeAll(dir), p.close())
}
