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
