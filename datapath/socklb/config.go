package socklb

import (
	"cmp"
	"errors"
	"fmt"
	"log/slog"
	"path/filepath"
	"strings"
)

// Default sizes. They are enough for 10,000 services with 2 ports (or IP families) of 10 endpoints:
// 20,000 frontends and 200,000 slots. A new set is made beside the one that it replaces and needs
// consecutive slots, so an eighth of the slots stays free for that: a service of 10,000 endpoints
// still finds room. Larger defaults would be expensive on machines with many CPUs, because counters
// are per CPU: the maps take about 24 MiB of kernel memory, and 2.3 MiB for each CPU.
const (
	DefaultMaxFrontends = 1 << 15
	DefaultMaxBackends  = 7 << 15
	DefaultMaxSockets   = 1 << 17
	DefaultMaxAffinity  = 1 << 15
	DefaultMaxOptOuts   = 1 << 12
)

// Limits of the sizes. The programs search at most 2^24 - 1 slots.
const (
	limitFrontends = 1 << 22
	limitBackends  = 1<<24 - 1
	limitSockets   = 1 << 24
	limitAffinity  = 1 << 24
	limitOptOuts   = 1 << 20
)

// Config has the places to attach to and the sizes of the maps. Pins is the only field that must be set.
type Config struct {
	// Pins is the directory on a bpffs that holds the pinned maps and links. It is created, and so
	// are its parents, as long as they are on a bpffs.
	Pins string
	// Cgroup is the cgroup v2 directory to attach to; if empty, the cgroup2 mount.
	Cgroup string
	// BelowRoot attaches to each cgroup right below Cgroup, and nothing to Cgroup itself, whose own
	// processes are then not served. It is for other programs that claim Cgroup for themselves.
	BelowRoot bool
	// MaxFrontends is the maximum number of frontends; 0 means DefaultMaxFrontends. Each takes 16
	// bytes and 16 for each CPU, and ~100 when used.
	MaxFrontends uint32
	// MaxBackends is the maximum number of slots, one per backend of each frontend; 0 means
	// DefaultMaxBackends. Each takes 32 bytes and 8 for each CPU. Leave room for twice the largest
	// frontend, because a new set is made beside the old one.
	MaxBackends uint32
	// MaxSockets, a power of two, is the number of sockets that can have a record at home; 0 means
	// DefaultMaxSockets. Each takes 64 bytes. As many records again spill into a slower map.
	MaxSockets uint32
	// MaxAffinity is the maximum number of pairs of client and frontend with session affinity that
	// are remembered; 0 means DefaultMaxAffinity. Each takes ~112 bytes. When the map is full, the
	// least recently used are forgotten.
	MaxAffinity uint32
	// MaxOptOuts is the maximum number of cgroups that opt out; 0 means DefaultMaxOptOuts. Each
	// takes ~80 bytes when used.
	MaxOptOuts uint32
	// AllowVirtualRoot permits a cgroup that is not the root of the machine's tree. Only processes
	// in that cgroup are then served. This is right for several nodes on one machine, but wrong in
	// a container.
	AllowVirtualRoot bool
	// Log receives messages that are not errors; nil discards them.
	Log *slog.Logger

	// step is called between the steps of an upgrade, so that tests can check what a crash there
	// leaves behind.
	step func(done string)
	// upgrades replaces known, so that tests can upgrade from layouts of their own.
	upgrades *upgrades
}

// Validate reports every field that cannot work, each by its name. It does not look at the machine.
func (c Config) Validate() error {
	var errs []error
	bad := func(field, format string, a ...any) {
		errs = append(errs, fmt.Errorf(field+": "+format, a...))
	}
	switch base := filepath.Base(c.Pins); {
	case c.Pins == "":
		bad("pins", "is empty; set a directory on a bpffs, such as /sys/fs/bpf/strait")
	case !filepath.IsAbs(c.Pins):
		bad("pins", "%q is not an absolute path", c.Pins)
	case strings.Contains(base, "."):
		bad("pins", "%q: names on a bpffs cannot contain a dot", base)
	case base == "/":
		bad("pins", "is the root directory; name a directory on a bpffs")
	}
	if c.Cgroup != "" && !filepath.IsAbs(c.Cgroup) {
		bad("cgroup", "%q is not an absolute path", c.Cgroup)
	}
	d := c.withDefaults()
	if d.MaxFrontends > limitFrontends {
		bad("maxFrontends", "%d is more than %d", d.MaxFrontends, limitFrontends)
	}
	if d.MaxBackends > limitBackends {
		bad("maxBackends", "%d is more than %d", d.MaxBackends, limitBackends)
	}
	if d.MaxAffinity > limitAffinity {
		bad("maxAffinity", "%d is more than %d", d.MaxAffinity, limitAffinity)
	}
	if d.MaxOptOuts > limitOptOuts {
		bad("maxOptOuts", "%d is more than %d", d.MaxOptOuts, limitOptOuts)
	}
	if d.MaxSockets&(d.MaxSockets-1) != 0 {
		bad("maxSockets", "%d is not a power of two", d.MaxSockets)
	} else if d.MaxSockets > limitSockets {
		bad("maxSockets", "%d is more than %d", d.MaxSockets, limitSockets)
	}
	return errors.Join(errs...)
}

func (c Config) withDefaults() Config {
	c.MaxFrontends = cmp.Or(c.MaxFrontends, DefaultMaxFrontends)
	c.MaxBackends = cmp.Or(c.MaxBackends, DefaultMaxBackends)
	c.MaxSockets = cmp.Or(c.MaxSockets, DefaultMaxSockets)
	c.MaxAffinity = cmp.Or(c.MaxAffinity, DefaultMaxAffinity)
	c.MaxOptOuts = cmp.Or(c.MaxOptOuts, DefaultMaxOptOuts)
	if c.Log == nil {
		c.Log = slog.New(slog.DiscardHandler)
	}
	if c.step == nil {
		c.step = func(string) {}
	}
	if c.upgrades == nil {
		c.upgrades = &known
	}
	c.Pins = filepath.Clean(c.Pins)
	return c
}
