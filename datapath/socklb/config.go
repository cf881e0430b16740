package socklb

import (
	"cmp"
	"errors"
	"fmt"
	"log/slog"
	"path/filepath"
	"strings"
)

// Default sizes. They hold 10,000 services with 2 ports (or IP families) of 10 endpoints: 20,000 frontends and
// 200,000 slots. A set is made beside the one that it replaces, in a row, so an eighth of the slots stays free
// for that: a service of 10,000 endpoints still finds room. More would cost machines with many CPUs dear, since
// counters are per CPU: the maps take about 24 MiB of kernel memory, and 2.3 MiB for each CPU.
const (
	DefaultMaxFrontends = 1 << 15
	DefaultMaxBackends  = 7 << 15
	DefaultMaxSockets   = 1 << 17
	DefaultMaxAffinity  = 1 << 15
	DefaultMaxOptOuts   = 1 << 12
)

// Bounds of the sizes: the programs search at most 2^24 - 1 slots.
const (
	limitFrontends = 1 << 22
	limitBackends  = 1<<24 - 1
	limitSockets   = 1 << 24
	limitAffinity  = 1 << 24
	limitOptOuts   = 1 << 20
)

// Config says where to attach and how large the maps are. Pins is the only field that must be set.
type Config struct {
	// Pins is the directory on a bpffs that holds the pinned maps and links. It is created; its
	// parent is too, as long as it lies on a bpffs.
	Pins string
	// Cgroup is the cgroup v2 directory to attach to; empty finds the cgroup2 mount.
	Cgroup string
	// MaxFrontends bounds the frontends; 0 is DefaultMaxFrontends. 16 bytes each
	// and 16 for each CPU, and ~100 when used.
	MaxFrontends uint32
	// MaxBackends bounds the slots, one per backend of each frontend; 0 is DefaultMaxBackends.
	// 32 bytes each and 8 for each CPU. Leave room for twice the largest frontend: a new set is made beside the old.
	MaxBackends uint32
	// MaxSockets, a power of two, is the number of sockets that have a record at home; 0 is
	// DefaultMaxSockets. 64 bytes each. As many again spill into a slower map.
	MaxSockets uint32
	// MaxAffinity bounds the pairs of client and frontend with session affinity that are remembered; 0 is
	// DefaultMaxAffinity. ~112 bytes each. When it is full, those that were away for longest start anew.
	MaxAffinity uint32
	// MaxOptOuts bounds the cgroups that opt out; 0 is DefaultMaxOptOuts. ~80 bytes each when used.
	MaxOptOuts uint32
	// AllowVirtualRoot permits a cgroup that is not the root of the machine's tree. Only processes
	// in that cgroup are then served: right for several nodes on one machine, wrong in a container.
	AllowVirtualRoot bool
	// Log gets warnings that are no errors; nil is silent.
	Log *slog.Logger

	// step is called between the steps of an upgrade, for tests of what a crash there leaves behind.
	step func(done string)
}

// Validate reports every field that cannot work, each by its name, without looking at the machine.
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
		bad("pins", "%q: a bpffs takes no names with a dot", base)
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
	c.Pins = filepath.Clean(c.Pins)
	return c
}
