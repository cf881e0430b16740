package daemon

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"strait.io/strait/clustermesh"
	"strait.io/strait/daemon/plan"
	"strait.io/strait/internal/enum"
)

// The defaults of LocalityConfig. Factor is Envoy's overprovisioning factor.
const (
	DefaultFactor = 1.4
	DefaultRamp   = 10 * time.Second
)

// SpillMode is whether a tier that is not healthy enough gives some of its traffic away.
type SpillMode string

// The modes; empty is SpillOn.
const (
	SpillOn  SpillMode = "on"
	SpillOff SpillMode = "off"
)

// UnmarshalText refuses unknown modes.
func (s *SpillMode) UnmarshalText(text []byte) error { return enum.Decode(s, text, SpillOn, SpillOff) }

// DistanceMode is what ranks clusters that are equally far by their labels.
type DistanceMode string

// The modes; empty is DistanceRTT.
const (
	DistanceRTT DistanceMode = "rtt"
	DistanceOff DistanceMode = "off"
)

// UnmarshalText refuses unknown modes.
func (d *DistanceMode) UnmarshalText(text []byte) error {
	return enum.Decode(d, text, DistanceRTT, DistanceOff)
}

func (l LocalityConfig) plan() plan.Locality {
	out := plan.Locality{Factor: l.Factor, Ramp: DefaultRamp, Tiers: l.Tiers, Prefer: l.Prefer, Costs: l.Costs}
	if out.Factor == 0 {
		out.Factor = DefaultFactor
	}
	if l.Spill == SpillOff {
		out.Factor = 0
	}
	if l.Ramp != nil {
		out.Ramp = l.Ramp.Duration
	}
	return out
}

func (l LocalityConfig) validate(m *mistakes) {
	if l.Factor != 0 && (l.Factor < 1 || l.Factor > 100) {
		m.add("locality.factor", "%v is not between 1, where each endpoint bears only its share, and 100", l.Factor)
	}
	if l.Ramp != nil && (l.Ramp.Duration < 0 || l.Ramp.Duration > time.Hour) {
		m.add("locality.ramp", "%s is not between 0s, which is at once, and 1h", l.Ramp.Duration)
	}
	last := -1
	for i, t := range l.Tiers {
		at := slices.Index(clustermesh.TierNames, t)
		if at <= last {
			m.add(fmt.Sprintf("locality.tiers[%d]", i), "%q is not a tier, or comes too late: want some of %s, in this order", t, strings.Join(clustermesh.TierNames, ", "))
		}
		last = max(last, at)
	}
	for i, c := range l.Prefer {
		if err := clustermesh.CheckName(string(c)); err != nil {
			m.add(fmt.Sprintf("locality.prefer[%d]", i), "%v", err)
		}
	}
}

// far returns how far away clusters are in steps of round-trip time, if that counts.
func (d *Daemon) far() map[clustermesh.ClusterName]uint32 {
	if d.config.Locality.Distance == DistanceOff {
		return nil
	}
	return d.gossip.Distances()
}
