package daemon

import (
	"os"
	"path/filepath"
	"time"

	"strait.io/strait/clustermesh"
	"strait.io/strait/daemon/api"
	"strait.io/strait/daemon/belief"
	"strait.io/strait/internal/durable"
	"strait.io/strait/internal/problem"
)

// savedBelief is the file with what authority.believeFile said last. A machine that believed only pinned
// clusters goes on so when that file is gone.
func (d *Daemon) savedBelief() string { return filepath.Join(d.config.StateDir, "believe") }

// followBelief puts in force whom this machine believes, and reports what is wrong with believeFile.
func (d *Daemon) followBelief() []clustermesh.Problem {
	if !d.config.Authority.later() {
		return nil
	}
	pins := d.files.pins.Get()
	text, unreadable := d.files.believe.Now()
	b, wrong := belief.InForce(text, unreadable, d.trust.lastBelief)
	// Nothing can be believed by pins that have not come yet.
	if all := b == belief.All || len(pins) == 0; all != d.trust.all {
		d.log.Info("whom this node believes changed", "everybody", all)
		d.trust.all = all
		d.gossip.Believe(all)
		d.pinned(pins)
	}
	if len(pins) > 0 && string(b) != d.trust.lastBelief {
		err := durable.Replace(d.savedBelief(), func(f *os.File) error {
			_, err := f.WriteString(string(b))
			return err
		})
		if err != nil {
			d.log.Warn("cannot save whom this node believes", "error", err)
		}
		d.trust.lastBelief = string(b)
	}
	if wrong == nil {
		return nil
	}
	return []clustermesh.Problem{{
		Code: problem.PinsFile, Object: "pins", Field: "authority.believeFile", File: d.config.Authority.BelieveFile,
		Message: "does not count: " + wrong.Error(), Try: "write pinned, or all, into the ConfigMap strait-believe",
	}}
}

// belief returns what the config says of whom to believe.
func (a AuthorityConfig) belief() belief.Config {
	return belief.Config{
		Off: a.Mode == AuthorityOff, Signs: a.on(), Pins: a.PinsFile != "", All: a.Believe == belief.All, Later: a.later(), Make: a.Make != nil,
	}
}

// openness returns what is known of whom this node believes.
func (d *Daemon) openness(s clustermesh.State, local clustermesh.Local) belief.Open {
	pins := d.files.pins.Get()
	o := belief.Open{Config: d.config.Authority.belief(), TrustsAll: d.trust.all, Pinned: len(pins) > 0, Known: len(pins), Kubernetes: d.kube.present(), Age: time.Since(d.born)}
	if !o.TrustsAll || o.Off {
		return o // nobody asks who else is there
	}
	var sealed map[clustermesh.Origin]bool
	if o.Later {
		sealed = d.gossip.Trust().Sealed
		o.Outside = belief.Outside(d.who.Cluster, pins[d.who.Cluster], local.Nodes, s)
		d.againIn(openPause)
	}
	o.Company = belief.CompanyOf(d.self().Origin(), s, pins, sealed)
	o.Company.Seeds = len(d.config.Gossip.Seeds)+len(d.files.seeds.Get()) > 0
	return o
}

// openPause is how often a daemon looks whether others sign by now: a seal that comes is no news.
const openPause = 5 * time.Second

// trustMode returns whom this node believes, for the status.
func (d *Daemon) trustMode() string {
	switch {
	case d.config.Authority.Mode == AuthorityOff:
		return api.AuthorityOff
	case d.trustsAll.Load():
		return api.AuthorityEverybody
	}
	return api.AuthorityPinned
}
