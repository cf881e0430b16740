package daemon

import (
	"context"
	"errors"
	"sync"
	"time"

	"strait.io/strait/daemon/health"
	"strait.io/strait/datapath/netfilter"
	"strait.io/strait/internal/problem"
)

// dropsEvery is how often the counters are read. Package health counts in it.
const dropsEvery = 10 * time.Second

// drops knows what the filter of the tunnel dropped.
type drops struct {
	mu    sync.Mutex
	drops health.Drops
}

func (d *drops) note(now netfilter.Drops) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.drops.Note(health.Counters(now))
}

func (d *drops) problems() []problem.Problem {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.drops.Problems()
}

// counts returns what was dropped since the daemon started.
func (d *drops) counts() netfilter.Drops {
	d.mu.Lock()
	defer d.mu.Unlock()
	return netfilter.Drops(d.drops.Total())
}

// countDrops reads what the filter dropped until ctx is done.
func (k *kernel) countDrops(ctx context.Context) error {
	tick := time.NewTicker(dropsEvery)
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			return nil
		case <-tick.C:
		}
		switch now, err := k.table.Drops(); {
		case err == nil:
			k.drops.note(now)
		case !errors.Is(err, errors.ErrUnsupported): // a Problem reports a kernel without nf_tables
			k.log.Warn("what the filter dropped cannot be read", "err", err)
		}
	}
}
