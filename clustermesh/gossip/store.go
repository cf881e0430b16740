package gossip

import (
	"context"
	"errors"
	"maps"
	"slices"
	"time"

	"strait.io/strait/clustermesh"
	"strait.io/strait/clustermesh/gossip/node"
	"strait.io/strait/clustermesh/gossip/statedir"
	"strait.io/strait/clustermesh/replica"
)

const (
	// savePause is how long a change waits to be saved together with those that follow it, and the
	// least time between two writes of the state. Encoding a large change takes processor time that
	// the turn for the same change needs. So writes take at most a fifth of all time (saveShare).
	savePause = time.Second
	saveShare = 5
)

// load reads what an earlier life saved. What cannot be read is missing, and its error is that of a Problem.
func (g *Gossip) load() (saved node.Saved, problems map[string]error) {
	problems = map[string]error{}
	note := func(key string, err error) {
		if err != nil {
			problems[key] = err
		}
	}
	var err error
	if g.cfg.StateDir != "" {
		g.records, saved.Records, err = statedir.OpenRecords(g.cfg.StateDir)
		note("state", err)
		g.unsaved.add(g.records.Origins()) // what is not held any more is to be dropped there
	}
	saved.Statement, err = statedir.LoadStatement(g.cfg.StateDir)
	note("state", err)
	saved.Distances = statedir.LoadDistances(g.cfg.StateDir)
	note("uids", g.loadClusters())
	return saved, problems
}

// keep saves the state after changes, at a bounded rate, until ctx ends. Run saves once more after
// that.
func (g *Gossip) keep(ctx context.Context) {
	if g.cfg.StateDir == "" {
		return
	}
	for pause := savePause; ctx.Err() == nil; {
		select {
		case <-ctx.Done():
		case <-g.dirty:
			sleep(ctx, pause)
			start := time.Now()
			g.save(ctx)
			pause = max(savePause, (saveShare-1)*time.Since(start))
		}
	}
}

// save writes what changed of the state: slowly, or at full speed once ctx has ended.
func (g *Gossip) save(ctx context.Context) {
	if g.cfg.StateDir == "" {
		return
	}
	err := errors.Join(g.saveRecords(ctx), g.saveClusters())
	g.do(func(n *node.Node, now time.Time) {
		if err != nil {
			n.Report("save", stateProblem(err), 0, now)
			g.dirty.Poke()
			return
		}
		for _, key := range []string{"save", "state", "uids"} {
			n.Solved(key, now)
		}
	})
}

// saveRecords saves the records that changed, or all if the file has to be written again.
func (g *Gossip) saveRecords(ctx context.Context) error {
	if g.records.Whole() {
		var all []replica.Entry
		g.do(func(n *node.Node, _ time.Time) { all, g.unsaved = n.Entries(), origins{} })
		return g.records.Replace(ctx, all) // if it fails, all are written the next time
	}
	var changed []clustermesh.Origin
	held := map[clustermesh.Origin]replica.Entry{}
	g.do(func(n *node.Node, _ time.Time) {
		changed, g.unsaved = slices.Collect(maps.Keys(g.unsaved)), origins{}
		for _, o := range changed {
			if e, ok := n.Entry(o); ok {
				held[o] = e
			}
		}
	})
	err := g.records.Save(ctx, changed, held)
	if err != nil {
		g.do(func(*node.Node, time.Time) { g.unsaved.add(changed) })
	}
	return err
}

// saveClusters saves the clusters' UIDs if they changed.
func (g *Gossip) saveClusters() error {
	all, news := g.clusters.unsaved()
	if !news {
		return nil
	}
	err := statedir.SaveUIDs(g.cfg.StateDir, all)
	if err != nil {
		g.clusters.unsave()
	}
	return err
}

// origins is a set of origins.
type origins map[clustermesh.Origin]bool

func (s origins) add(all []clustermesh.Origin) {
	for _, o := range all {
		s[o] = true
	}
}
