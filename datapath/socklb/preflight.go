package socklb

import (
	"github.com/cilium/ebpf/rlimit"

	"strait.io/strait/datapath"
	"strait.io/strait/datapath/socklb/cgroup"
	"strait.io/strait/datapath/socklb/inspect"
	"strait.io/strait/datapath/socklb/layout"
)

// Preflight is what a machine has of what Open needs.
type Preflight struct {
	Kernel   string // its release
	Features []datapath.Feature
	Cgroup   string
	Foreign  []datapath.ForeignProgram
	// The errors are why something is missing, or could not be found out.
	FeaturesErr, CgroupErr, PinsErr, ForeignErr error
}

// Look finds out what Open would find. It changes nothing.
func Look(cfg Config) (p Preflight) {
	p.Kernel = release()
	if p.FeaturesErr = permitted(); p.FeaturesErr == nil {
		if p.FeaturesErr = layout.Explain(rlimit.RemoveMemlock()); p.FeaturesErr == nil {
			p.Features, p.FeaturesErr = probe()
		}
	}
	p.PinsErr = onBPFFS(cfg.Pins)
	cg, err := cgroup.Open(cfg.Cgroup, cfg.AllowVirtualRoot)
	if p.Cgroup, p.CgroupErr = cg.Path, err; err != nil {
		p.ForeignErr = err
		return p
	}
	p.Foreign, p.ForeignErr = inspect.Everyone(cg.Path)
	return p
}
