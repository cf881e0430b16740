package daemon

import (
	"context"
	"time"

	"strait.io/strait/datapath/wireguard"
	"strait.io/strait/internal/notify"
)

// askEvery is how often a device in userspace is asked whether it answers. With the time that the question and
// a new process take, it is back well within 30 s.
const askEvery = 10 * time.Second

// askTunnel pokes silent when the process of a device in userspace does not answer, until ctx is done. The kernel
// notices when a process has died, but not when it was stopped.
func (k *kernel) askTunnel(ctx context.Context, silent notify.Signal) error {
	tick := time.NewTicker(askEvery)
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			return nil
		case <-tick.C:
		}
		if _, device := k.opened(); device != nil && device.Kind() == wireguard.Userspace && !device.Alive() {
			silent.Poke()
		}
	}
}
