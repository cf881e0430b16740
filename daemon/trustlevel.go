package daemon

import (
	"os"
	"path/filepath"
	"time"

	"strait.io/strait/clustermesh"
	"strait.io/strait/daemon/api"
	"strait.io/strait/daemon/trustlevel"
	"strait.io/strait/internal/durable"
	"strait.io/strait/internal/problem"
)

// savedTrustLevel is the file with the last value of authority.believeFile. A machine that trusted only
// pinned clusters continues to do so when believeFile is gone.
func (d *Daemon) savedTrustLevel() string { return filepath.Join(d.config.StateDir, "believe") }

// followTrustLevel puts the trust of believeFile in force, and reports what is wrong with that file.
func (d *Daemon) followTrustLevel() []clustermesh.Problem {
	if !d.config.Authority.later() {
		return nil
	}
	pins := d.files.pins.Get()
	text, unreadable := d.files.believe.Now()
	b, wrong := trustlevel.InForce(text, unreadable, d.trust.lastTrustLevel)
	// Without pins, no cluster can be trusted by them.
	if all := b == trustlevel.All || len(pins) == 0; all != d.trust.all {
		d.log.Info("whom this node trusts changed", "everybody", all)
		d.trust.all = all
		d.gossip.SetLax(all)
		d.pinned(pins)
	}
	if len(pins) > 0 && string(b) != d.trust.lastTrustLevel {
		err := durable.Replace(d.savedTrustLevel(), func(f *os.File) error {
			_, err := f.WriteString(string(b))
			return err
		})
		if err != nil {
			d.log.Warn("cannot save whom this node trusts", "err", err)
		}
		d.trust.lastTrustLevel = string(b)
	}
	if wrong == nil {
		return nil
	}
	return []clustermesh.Problem{{
		Code: problem.PinsFile, Object: "pins", Field: "authority.believeFile", File: d.config.Authority.TrustLevelFile,
		Message: "is ignored: " + wrong.Error(), Try: "write pinned, or all, into the ConfigMap strait-believe",
	}}
}

// trust returns the part of the config about trust.
func (a AuthorityConfig) trust() trustlevel.Config {
	return trustlevel.Config{
		Off: a.Mode == AuthorityOff, Signs: a.on(), Pins: a.PinsFile != "", All: a.TrustLevel == trustlevel.All, Later: a.later(), Make: a.Make != nil,
	}
}

// openness returns what trustlevel.Open decides from.
func (d *Daemon) openness(s clustermesh.State, local clustermesh.Local) trustlevel.Open {
	pins := d.files.pins.Get()
	o := trustlevel.Open{Config: d.config.Authority.trust(), TrustsAll: d.trust.all, Pinned: len(pins) > 0, Known: len(pins), Kubernetes: d.kube.present(), Age: time.Since(d.born)}
	if !o.TrustsAll || o.Off {
		return o // then the company does not matter
	}
	var sealed map[clustermesh.Origin]bool
	if o.Later {
		sealed = d.gossip.Trust().Sealed
		o.Outside = trustlevel.Outside(d.who.Cluster, pins[d.who.Cluster], local.Nodes, s)
		d.againIn(openPause)
	}
	o.Company = trustlevel.CompanyOf(d.self().Origin(), s, pins, sealed)
	o.Company.Seeds = len(d.config.Gossip.Seeds)+len(d.files.seeds.Get())+len(d.trust.seeds) > 0
	return o
}

// openPause is how often a daemon checks whether others sign by now: gossip does not report new seals.
const openPause = 5 * time.Second

// trustMode returns whom this node trusts, for the status.
func (d *Daemon) trustMode() string {
	switch {
	case d.config.Authority.Mode == AuthorityOff:
		return api.AuthorityOff
	case d.trustsAll.Load():
		return api.AuthorityEverybody
	}
	return api.AuthorityPinned
}
