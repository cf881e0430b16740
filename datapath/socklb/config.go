package socklb

import (
	"errors"
	"fmt"
	"log/slog"
	"path/filepath"
	"strings"
)

// Default sizes. Together the maps take about 17 MiB of kernel memory.
const (
	DefaultMaxFrontends = 1 << 16
	DefaultMaxBackends  = 1 << 18
	DefaultMaxSockets   = 1 << 17
)

// Bounds of the sizes: the programs search at most 2^24 - 1 slots.
const (
	limitFrontends = 1 << 22
	limitBackends  = 1<<24 - 1
	limitSockets   = 1 << 24
)

// Config says where to attach and how large the maps are. Pins is the only field that must be set.
type Config struct {
	// Pins is the directory on a bpffs that holds the pinned maps and links. It is created; its
	// parent is too, as long as it lies on a bpffs.
	Pins string
	// Cgroup is the cgroup v2 directory to attach to; empty finds the cgroup2 mount.
	Cgroup string
	// MaxFrontends bounds the frontends; 0 is DefaultMaxFrontends. 8 bytes each, and ~100 when used.
	MaxFrontends uint32
	// MaxBackends bounds the slots, one per backend of each frontend; 0 is DefaultMaxBackends.
	// 32 bytes each. Leave room for twice the largest frontend: a new set is made beside the old.
	MaxBackends uint32
	// MaxSockets, a power of two, is the number of sockets that have a record at home; 0 is
	// DefaultMaxSockets. 64 bytes each. As many again spill into a slower map.
	MaxSockets uint32
	// AllowVirtualRoot permits a cgroup that is not the root of the machine's tree. Only processes
	// in that cgroup are then served: right for several nodes on one machine, wrong in a container.
	AllowVirtualRoot bool
	// Log gets warnings that are no errors; nil is silent.
	Log *slog.Logger
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
	if d.MaxSockets&(d.MaxSockets-1) != 0 {
		bad("maxSockets", "%d is not a power of two", d.MaxSockets)
	} else if d.MaxSockets > limitSockets {
		bad("maxSockets", "%d is more than %d", d.MaxSockets, limitSockets)
	}
	return errors.Join(errs...)
}

func (c Config) withDefaults() Config {
	if c.MaxFrontends == 0 {
		c.MaxFrontends = DefaultMaxFrontends
	}
	if c.MaxBackends == 0 {
		c.MaxBackends = DefaultMaxBackends
	}
	if c.MaxSockets == 0 {
		c.MaxSockets = DefaultMaxSockets
	}
	if c.Log == nil {
		c.Log = slog.New(slog.DiscardHandler)
	}
	c.Pins = filepath.Clean(c.Pins)
	return c
}
