package daemon

import (
	"context"
	"errors"
	"io/fs"
	"os"
	"time"

	"strait.io/strait/datapath/route"
	"strait.io/strait/datapath/wireguard"
	"strait.io/strait/internal/problem"
)

// noTunnels is the part of a node whose mesh is off: it removes the device that the node has from
// when it was on. Otherwise its port would stay open to the peers of then.
type noTunnels struct{ kernel *kernel }

func (noTunnels) name() string         { return "wireguard" }
func (noTunnels) same(_, _ want) bool  { return true }
func (noTunnels) again() time.Duration { return 0 }

// prune does nothing on a node that never had a mesh: a device of the same name is another
// program's, or another daemon's.
func (t noTunnels) prune(context.Context, job) ([]problem.Problem, error) {
	if _, err := os.Stat(t.kernel.keyFile()); errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	device := t.kernel.config.Mesh.Device
	return nil, errors.Join(
		wireguard.CleanUp(wireguard.Config{Device: device}),
		route.RemoveDevice(device),
	)
}
