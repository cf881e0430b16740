package datapath

import (
	"cmp"
	"slices"
	"strings"
)

// Feature is something that the kernel has or lacks, as a probe found.
type Feature struct {
	Name string `json:"name"`
	OK   bool   `json:"ok"`
	// Since is the first kernel version that has it. Without is what strait does where it is
	// missing; it is empty if strait cannot run without it.
	Since   string `json:"since,omitempty"`
	Without string `json:"without,omitempty"`
}

// MapUsage is how full one eBPF map is.
type MapUsage struct {
	// Map is the name of its pin.
	Map string `json:"map"`
	// Used of Limit entries are taken.
	Used  uint64 `json:"used"`
	Limit uint64 `json:"limit"`
	// Setting is the configuration field that sizes it; empty if there is none or it is unknown.
	Setting string `json:"setting,omitempty"`
	// Soft is true if it is no problem when the map is full: it makes room by itself, or another
	// map takes new entries.
	Soft bool `json:"soft,omitempty"`
}

// Share returns the part of the map that is in use, 0…1.
func (m MapUsage) Share() float64 {
	if m.Limit == 0 {
		return 0
	}
	return min(float64(m.Used)/float64(m.Limit), 1)
}

// ForeignProgram is another program on a hook that strait uses. It can change or refuse what strait
// decides, and strait can do the same to it.
type ForeignProgram struct {
	// Hook is where it is attached, such as "connect4".
	Hook string `json:"hook"`
	// ID and Name are the kernel's, as bpftool shows them.
	ID   uint32 `json:"id"`
	Name string `json:"name,omitempty"`
	// Path is the cgroup that it is attached to; empty if that is not visible from here.
	Path  string       `json:"path,omitempty"`
	Order ForeignOrder `json:"order,omitempty"`
}

// Chooses reports whether its hook is one that chooses where a call goes. On the others, programs
// undo that choice for their own sockets.
func (f ForeignProgram) Chooses() bool {
	return strings.HasPrefix(f.Hook, "connect") || strings.HasPrefix(f.Hook, "sendmsg")
}

// Decides reports whether it runs before strait, or may do so, on a hook that chooses: if it is a
// load balancer, it decides about the addresses that it knows, whatever strait has for them.
func (f ForeignProgram) Decides() bool {
	return f.Chooses() && f.Order != After && f.Order != Top
}

// Ahead returns those that decide.
func Ahead(all []ForeignProgram) []ForeignProgram {
	return slices.DeleteFunc(slices.Clone(all), func(f ForeignProgram) bool { return !f.Decides() })
}

// Names returns the names of programs, each once.
func Names(all []ForeignProgram) (names []string) {
	for _, f := range all {
		if name := cmp.Or(f.Name, "one without a name"); !slices.Contains(names, name) {
			names = append(names, name)
		}
	}
	return names
}

// ForeignOrder is when a foreign program runs. The kernel runs the programs of a socket's own
// cgroup first, then those of its parents. All of them run. But the first load balancer that knows
// an address replaces it by a backend's, which the next ones do not know. A program that refuses
// always wins.
type ForeignOrder string

// The orders. Below means before strait's program, but only for sockets in a cgroup below strait's.
// Top means before it, but only for sockets right in strait's cgroup: the cgroups below have it as
// well.
const (
	Before ForeignOrder = "before"
	After  ForeignOrder = "after"
	Below  ForeignOrder = "below"
	Top    ForeignOrder = "top"
)
