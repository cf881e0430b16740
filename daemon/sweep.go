package daemon

import (
	"context"
	"errors"
	"time"

	"strait.io/strait/datapath/sockdestroy"
)

// sweepEvery is how often records of sockets that are gone are looked for.
const sweepEvery = time.Minute

// sweeper frees the records of sockets that ended without the load balancer's hook: once it is
// open, and then regularly. Such sockets are the kernel's own (SMC, NFS, MPTCP on old kernels).
// Until then, each takes the place of another socket's record, which is then kept at a slower one.
func (k *kernel) sweeper(ctx context.Context) error {
	tick := time.NewTicker(sweepEvery)
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			return nil
		case <-k.balancing:
		case <-tick.C:
		}
		lb := k.balancer()
		if lb == nil {
			continue
		}
		freed, err := sockdestroy.Sweep(ctx, "/proc", lb)
		switch {
		case errors.Is(err, context.Canceled):
		case err != nil:
			k.log.Warn("cannot look for records of sockets that are gone", "err", err)
		case freed > 0:
			k.log.Info("freed the records of sockets that are gone", "sockets", freed)
		}
		k.swept.Add(uint64(freed))
	}
}
