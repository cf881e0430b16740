package daemon

import (
	"crypto/rand"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"

	"strait.io/strait/clustermesh"
	"strait.io/strait/clustermesh/authority"
	"strait.io/strait/clustermesh/gossip"
	"strait.io/strait/daemon/plan"
	"strait.io/strait/daemon/trustlevel"
	"strait.io/strait/datapath/wireguard"
	"strait.io/strait/internal/durable"
	"strait.io/strait/internal/key"
	"strait.io/strait/internal/keyfile"
	"strait.io/strait/internal/problem"
)

// keys are what this machine signs with.
type keys struct {
	root    *authority.PrivateKey // nil if this machine does not have it
	node    authority.PrivateKey
	tunnels *key.Private // of WireGuard; nil without tunnels
}

// privateDir makes a directory for keys, or closes an existing one to other users: the kubelet makes
// it with mode 0755.
func privateDir(path string) error {
	if err := os.MkdirAll(path, 0o700); err != nil {
		return err
	}
	st, err := os.Stat(path)
	if err == nil && st.Mode().Perm()&0o077 != 0 {
		err = os.Chmod(path, 0o700)
	}
	return err
}

func nodeKeyFile(c Config) string { return filepath.Join(c.StateDir, "node.key") }

// loadKeys reads the key of this cluster's root, and the machine's own keys, which it generates if
// they are missing.
func loadKeys(c Config) (k keys, err error) {
	text, err := keyfile.LoadOrMake(nodeKeyFile(c), func() (string, error) {
		made, err := authority.Generate(rand.Reader)
		return made.Base64(), err
	})
	if err != nil {
		return k, fmt.Errorf("node key: %w", err)
	}
	if k.node, err = authority.ParsePrivate(text); err != nil {
		return k, fmt.Errorf("node key %s: %w; restore it, or delete it for a new key", nodeKeyFile(c), err)
	}
	if c.Mesh.on() {
		private, err := wireguard.LoadKey(c.tunnelKeyFile())
		if err != nil {
			return k, fmt.Errorf("WireGuard key: %w", err)
		}
		k.tunnels = &private
	}
	k.root, err = loadRoot(c.Authority.RootFile)
	return k, err
}

// proof returns the proof that this node has the private key of its tunnels; zero without tunnels.
func (d *Daemon) proof() (key.Signature, error) {
	if d.keys.tunnels == nil {
		return key.Signature{}, nil
	}
	return authority.ProveKey(rand.Reader, d.self().Origin(), d.keys.node.Public(), *d.keys.tunnels)
}

// loadRoot reads the key of a cluster's root; nil if no file is configured.
func loadRoot(path string) (*authority.PrivateKey, error) {
	if path == "" {
		return nil, nil
	}
	text, err := keyfile.Read(path, keyfile.AllUsers)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, fmt.Errorf("authority.rootFile: %w; strait clusterset init makes it", err)
	}
	if err != nil {
		return nil, fmt.Errorf("authority.rootFile: %w", err)
	}
	root, err := authority.ParsePrivate(text)
	if err != nil {
		return nil, fmt.Errorf("authority.rootFile: %s: %w", path, err)
	}
	return &root, nil
}

// authority returns the keys and pins with which gossip starts; nil if nothing is
// configured.
func (d *Daemon) authority(own clustermesh.ClusterName) (*gossip.Authority, error) {
	d.trust.all = true
	if !d.config.Authority.on() {
		// Turning it on again later must start as the first time did, and cut off no cluster.
		if err := os.Remove(d.savedTrustLevel()); err != nil && !errors.Is(err, fs.ErrNotExist) {
			return nil, fmt.Errorf("stateDir: %w", err)
		}
		return nil, nil
	}
	a := &gossip.Authority{Root: d.keys.root, Node: d.keys.node, Ranges: d.config.ClusterSetCIDRs, ConfigFrom: d.config.configFrom(own)}
	var err error
	if a.Proof, err = d.proof(); err != nil {
		return nil, fmt.Errorf("prove the WireGuard key: %w", err)
	}
	if d.config.Authority.PinsFile == "" {
		return a, nil
	}
	d.trust.all = d.config.Authority.TrustLevel == trustlevel.All
	if d.config.Authority.later() {
		saved, _ := os.ReadFile(d.savedTrustLevel()) // a missing file is an empty one
		d.trust.lastTrustLevel = string(saved)
		text, unreadable := d.files.believe.Now()
		b, _ := trustlevel.InForce(text, unreadable, d.trust.lastTrustLevel) // what is wrong is reported by followTrustLevel
		d.trust.all = b == trustlevel.All
	}
	saved, _ := os.ReadFile(d.savedPins()) // a missing file is like an unreadable one
	text, err := d.files.pins.Source().Now()
	if err == nil {
		a.Pins, err = trustlevel.ParsePins(text, own, d.keys.root)
	}
	if err == nil {
		err = trustlevel.Lost(text, string(saved), a.Pins)
	}
	if err != nil {
		// A daemon with authority.pinsFile must not run without pins. Those of the last life stay in force,
		// and followPins reports what is wrong.
		text = string(saved)
		var failed error
		switch a.Pins, failed = trustlevel.ParsePins(text, own, d.keys.root); {
		case failed != nil && d.config.Authority.later() && d.trust.all:
			a.Pins, a.Lax = nil, true
			return a, nil // they come later
		case failed != nil:
			return nil, fmt.Errorf("authority.pinsFile: %s: %w", d.config.Authority.PinsFile, err)
		}
	}
	a.Lax = d.trust.all
	d.files.pins.Set(text, a.Pins)
	d.trust.seeds = trustlevel.Seeds(text, own)
	d.pinned(a.Pins)
	d.savePins(text)
	return a, nil
}

// savedPins is the file with the last pins in force.
func (d *Daemon) savedPins() string { return filepath.Join(d.config.StateDir, "pins.yaml") }

// trusted is whom this node trusts, and what follows from that.
type trusted struct {
	// lastTrustLevel is the last value of authority.believeFile. All is whether every holder of the
	// gossip key is trusted.
	lastTrustLevel string
	all            bool
	// overlap is what is wrong between the pins in force.
	overlap error
	seeds   []string                  // where the members of authority.membersDir are found
	members []clustermesh.ClusterName // the pinned clusters, sorted; nil if all is true
	remotes []plan.Remote             // the pinned pod ranges of other clusters, if the mesh is strict
}

// pinned notes what follows from the pins that are in force.
func (d *Daemon) pinned(pins authority.Pins) {
	t := &d.trust
	t.overlap, t.members, t.remotes = pins.Overlap(), nil, nil
	d.kube.within(trustlevel.Nodeless(pins, d.who.Cluster, t.all))
	if t.all {
		return
	}
	t.members = slices.Sorted(maps.Keys(pins))
	if d.config.Mesh.strict() {
		t.remotes = trustlevel.Remotes(pins, d.who.Cluster)
	}
}

// savePins saves the pins in force for the next life of the daemon.
func (d *Daemon) savePins(text string) {
	err := durable.Replace(d.savedPins(), func(f *os.File) error {
		_, err := f.WriteString(text)
		return err
	})
	if err != nil {
		d.log.Warn("cannot save the pins; if their file is missing at the next start, straitd will not start", "err", err)
	}
}

// repin puts changed pins in force.
func (d *Daemon) repin(text string, pins authority.Pins) error {
	d.gossip.Repin(pins)
	d.pinned(pins)
	d.trust.seeds = trustlevel.Seeds(text, d.who.Cluster)
	d.savePins(text)
	d.log.Info("the pins changed", "clusters", len(pins))
	return nil
}

// followPins puts the pins in the file in force. It returns what is wrong with the file, or
// else with the pins in force.
func (d *Daemon) followPins() []clustermesh.Problem {
	pins, problems := d.files.pins.Next()
	text, err := d.files.pins.Source().Now()
	switch {
	case d.config.Authority.later() && len(pins) == 0 && (errors.Is(err, fs.ErrNotExist) || trustlevel.Awaited(text, d.who.Cluster)):
		return nil // they come later, and trustlevel.Open reports that
	case len(problems) > 0 || d.trust.overlap == nil:
		return problems
	}
	return []clustermesh.Problem{{
		Code: problem.PinsFile, Object: "pins", Field: "authority.pinsFile", File: d.config.Authority.PinsFile,
		Message: d.trust.overlap.Error(), Try: "correct the ranges in the pins of every cluster",
	}}
}
