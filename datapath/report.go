package datapath

// Feature is something that the kernel has or has not, as a probe found.
type Feature struct {
	Name string `json:"name"`
	OK   bool   `json:"ok"`
	// Since is the first kernel version that has it. Without says what strait does where it is missing, and is
	// empty if strait cannot run there.
	Since   string `json:"since,omitempty"`
	Without string `json:"without,omitempty"`
}

// MapUsage says how full one map of the kernel is.
type MapUsage struct {
	// Map is the name of its pin.
	Map string `json:"map"`
	// Used of Limit entries are taken.
	Used  uint64 `json:"used"`
	Limit uint64 `json:"limit"`
	// Setting is the configuration field that sizes it; empty if none does, or none is known.
	Setting string `json:"setting,omitempty"`
	// Soft is true if full is no problem: the map makes room by itself, or another takes what is new.
	Soft bool `json:"soft,omitempty"`
}

// Share is the part of the map that is in use, 0…1.
func (m MapUsage) Share() float64 {
	if m.Limit == 0 {
		return 0
	}
	return min(float64(m.Used)/float64(m.Limit), 1)
}

// ForeignProgram is another program on a hook that strait uses. It may change or refuse what strait decides, and
// strait what it does.
type ForeignProgram struct {
	// Hook is where it is attached, such as "connect4".
	Hook string `json:"hook"`
	// ID and Name are the kernel's, as bpftool shows them.
	ID   uint32 `json:"id"`
	Name string `json:"name,omitempty"`
	// Path is the cgroup that it is attached to; empty if that cannot be seen from here.
	Path  string       `json:"path,omitempty"`
	Order ForeignOrder `json:"order,omitempty"`
}

// ForeignOrder is when a foreign program runs. The kernel runs the programs of a socket's own cgroup first, then
// those of its parents. The last one to write an address wins; one that refuses always wins.
type ForeignOrder string

// The orders. Below is before strait's program, for sockets of a cgroup below strait's alone.
const (
	Before ForeignOrder = "before"
	After  ForeignOrder = "after"
	Below  ForeignOrder = "below"
)
