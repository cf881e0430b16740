package gossip

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"time"

	"strait.io/strait/clustermesh"
	"strait.io/strait/clustermesh/gossip/node"
	"strait.io/strait/clustermesh/gossip/statedir"
	"strait.io/strait/clustermesh/replica"
	"strait.io/strait/internal/durable"
)

const (
	uidsFile = "clusters.json"
	// distancesFile holds steps of round-trip time, so that a restart moves no connections.
	distancesFile = "distances.json"
	// savePause is how long a change waits to be saved together with those that follow it, and the
	// least time between two writes of the state. Encoding a large change takes processor time that
	// the turn for the same change needs. So writes take at most a fifth of all time (saveShare).
	savePause = time.Second
	saveShare = 5
)

// maxStateFile bounds uidsFile and distancesFile, in bytes: more than is written.
const maxStateFile = 256 << 10

// loadUIDs reads what saveUIDs wrote; nothing if there is no file.
func loadUIDs(dir string) (out map[clustermesh.ClusterName]string, err error) {
	if dir == "" {
		return nil, nil
	}
	b, err := durable.Read(filepath.Join(dir, uidsFile), maxStateFile)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err == nil {
		err = json.Unmarshal(b, &out)
	}
	if err != nil {
		return nil, fmt.Errorf("read the clusters' UIDs: %w", err)
	}
	return out, nil
}

func saveUIDs(dir string, all map[clustermesh.ClusterName]string) error {
	b, err := json.Marshal(all)
	if err != nil {
		return fmt.Errorf("write the clusters' UIDs: %w", err)
	}
	return durable.Replace(filepath.Join(dir, uidsFile), func(f *os.File) error {
		_, err := f.Write(b)
		return err
	})
}

// loadDistances reads what saveDistances wrote; nothing if that cannot be read: it is measured again.
func loadDistances(dir string) (out map[clustermesh.ClusterName]uint32) {
	b, err := durable.Read(filepath.Join(dir, distancesFile), maxStateFile)
	if dir == "" || err != nil || json.Unmarshal(b, &out) != nil {
		return nil
	}
	return out
}

func saveDistances(dir string, steps map[clustermesh.ClusterName]uint32) error {
	if dir == "" {
		return nil
	}
	b, err := json.Marshal(steps)
	if err != nil {
		return err
	}
	return durable.Replace(filepath.Join(dir, distancesFile), func(f *os.File) error {
		_, err := f.Write(b)
		return err
	})
}

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
	saved.Statement, err = loadStatement(g.cfg.StateDir)
	note("state", err)
	saved.Distances = loadDistances(g.cfg.StateDir)
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
	err := saveUIDs(g.cfg.StateDir, all)
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
