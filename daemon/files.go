package daemon

import (
	"cmp"
	"context"
	"slices"

	"golang.org/x/sync/errgroup"

	"strait.io/strait/clustermesh"
	"strait.io/strait/clustermesh/authority"
	"strait.io/strait/daemon/plan"
	"strait.io/strait/daemon/trustlevel"
	"strait.io/strait/daemon/watch"
	"strait.io/strait/internal/gossipkey"
	"strait.io/strait/internal/notify"
	"strait.io/strait/internal/problem"
)

// files are the files that can change while the daemon runs. The loop owns their values.
type files struct {
	seeds *watch.Value[[]string]
	keys  *watch.Value[gossipkey.Ring]
	pins  *watch.Value[authority.Pins]
	// guests are the machines outside every cluster. A file that is gone has none, so that its removal
	// takes effect.
	guests *watch.Value[[]plan.Guest]
	// believe has which clusters to trust; see trustlevel.InForce.
	believe *watch.Source[string]
}

// watchFiles reads the files once. Their values come into force in the loop, see follow.
func (d *Daemon) watchFiles(c Config, changed notify.Signal) files {
	return files{
		seeds: watch.Follow(watch.File(c.Gossip.SeedsFile, changed), watch.Rule[[]string]{
			Parse:  func(text string) ([]string, error) { return parseSeeds(text), nil },
			Absent: watch.Kept, // a cluster that is not connected to others has none
			Problem: clustermesh.Problem{Code: problem.SeedsFile, Object: "seeds", Field: "gossip.seedsFile", File: c.Gossip.SeedsFile, Warning: true,
				Message: "cannot be read, its last seeds stay in force", Try: "make it readable for straitd"},
		}),
		keys: watch.Follow(watch.File(c.Gossip.KeyFile, changed), watch.Rule[gossipkey.Ring]{
			Parse: func(string) (gossipkey.Ring, error) { return loadGossipKeys(c) }, // it also checks who can read the file
			Use:   d.rekey,
			Problem: clustermesh.Problem{Code: problem.GossipKeyUnreadable, Object: "gossip key", Field: "gossip.keyFile", File: c.Gossip.KeyFile,
				Message: "cannot be used, so the last one stays in force", Try: "copy the file from another machine of the clusterset again"},
		}),
		pins: watch.Follow(watch.Files(pinsAndMembers(c.Authority), changed), watch.Rule[authority.Pins]{
			Parse: func(text string) (authority.Pins, error) {
				pins, err := trustlevel.ParsePins(text, d.who.Cluster, d.keys.root)
				return pins, cmp.Or(err, trustlevel.Lost(text, d.files.pins.Text(), pins))
			},
			Use: d.repin,
			Problem: clustermesh.Problem{Code: problem.PinsFile, Object: "pins", Field: "authority.pinsFile", File: c.Authority.PinsFile,
				Message: "cannot be used, so the last pins stay in force", Try: "correct the file, or write it again with strait clusterset accept"},
		}),
		guests: watch.Follow(watch.File(c.Mesh.PeersFile, changed), watch.Rule[[]plan.Guest]{
			Parse: parseGuests, Use: d.reinvite, Absent: watch.Empty,
			Problem: clustermesh.Problem{Code: problem.PeersFile, Object: "peers", Field: "mesh.peersFile", File: c.Mesh.PeersFile,
				Message: "cannot be used, so the last peers stay in force", Try: "correct the file; strait peer add and strait peer remove write it"},
		}),
		believe: watch.File(c.Authority.TrustLevelFile, changed),
	}
}

// openFiles reads the files once. There must be gossip keys.
func (d *Daemon) openFiles(changed notify.Signal) error {
	d.files = d.watchFiles(d.config, changed)
	text, _ := d.files.keys.Source().Now() // the load below reports errors
	keys, err := loadGossipKeys(d.config)
	d.files.keys.Set(text, keys)
	return err
}

// run reads the files until ctx is done.
func (f files) run(ctx context.Context) error {
	g, ctx := errgroup.WithContext(ctx)
	for _, s := range []*watch.Source[string]{f.seeds.Source(), f.keys.Source(), f.pins.Source(), f.guests.Source(), f.believe} {
		g.Go(func() error { return s.Run(ctx) })
	}
	return g.Wait()
}

// follow puts the files' present values in force, and returns what is wrong with them. Later files can
// depend on earlier ones.
func (d *Daemon) follow(local clustermesh.Local) []clustermesh.Problem {
	pins := d.followPins()
	seeds := d.seed(local) // members have some, too
	believe, lent := d.followTrustLevel(), d.followLoan()
	_, keys := d.files.keys.Next()
	_, guests := d.files.guests.Next()
	return slices.Concat(seeds, pins, believe, lent, keys, guests)
}
