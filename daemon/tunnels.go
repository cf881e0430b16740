package daemon

import (
	"context"
	"errors"
	"fmt"
	"net/netip"
	"path/filepath"
	"slices"
	"time"

	"strait.io/strait/datapath"
	"strait.io/strait/datapath/wireguard"
	"strait.io/strait/internal/key"
	"strait.io/strait/internal/problem"
)

// tunnels is the part that maintains the WireGuard device and its peers.
type tunnels struct {
	kernel *kernel
	// newPeers: some peers of the last put are new since the last handshakes. Owned by the loop.
	newPeers bool
	// sizes are those of the last put. Owned by the loop.
	sizes sizes
	// made is how often the device had been made at the last put. Owned by the loop.
	made int
	// inside has the peers of the last put, with their addresses inside the tunnel. Guarded by
	// kernel.mu.
	inside map[key.Public]netip.AddrPort
	// guests are those that the device has. Withheld: some wait for the filter. Both are owned by the
	// loop.
	guests   map[key.Public][]netip.Prefix
	withheld bool
}

func (t *tunnels) name() string { return "wireguard" }

func (t *tunnels) again() time.Duration {
	if t.withheld {
		return time.Second // the filter is put after the tunnels
	}
	return 0
}

func (t *tunnels) same(a, b want) bool {
	return deviceAddr(a.Sources) == deviceAddr(b.Sources) &&
		(datapath.SameList(a.Peers, b.Peers) || slices.EqualFunc(a.Peers, b.Peers, datapath.Peer.Equal))
}

func (t *tunnels) put(ctx context.Context, j job) ([]problem.Problem, error) {
	if j.fresh {
		t.kernel.router.Forget()
	}
	sizes, err := t.kernel.sizes(j.Peers)
	if err != nil {
		return nil, err
	}
	if !sizes.equal(t.sizes) {
		t.kernel.stack.mark(suspect, "route") // its routes have the sizes for single peers
	}
	t.sizes = sizes
	device, err := t.open(ctx, sizes.device)
	if err != nil {
		return nil, err
	}
	// Made sure of in each put: another program may have deleted the device, or changed it.
	device.Shape(sizes.device, deviceAddr(j.Sources))
	peers, err := t.admit(device, j)
	if err != nil {
		return nil, err
	}
	problems, err := device.Reconcile(peers, false)
	t.rebuild(device.Made())
	if err == nil {
		t.notePeers(j.Peers)
	}
	return problems, err
}

// rebuild has the parts above put again if the device was made again: the kernel dropped its routes with
// it. The sessions are lost too, and the peers do not know: without handshakes, they would use the old ones
// until they have missed answers for 15 s.
func (t *tunnels) rebuild(made int) {
	if made == t.made {
		return
	}
	t.made = made
	t.kernel.mu.Lock()
	t.inside = nil
	t.kernel.mu.Unlock()
	t.kernel.stack.mark(disturb, "route")
}

func (t *tunnels) prune(_ context.Context, j job) ([]problem.Problem, error) {
	device, _ := t.opened()
	peers, err := t.admit(device, j)
	if err != nil {
		return nil, err
	}
	return device.Reconcile(peers, true)
}

// open returns the device. If it is not open yet, open opens or creates it.
func (t *tunnels) open(ctx context.Context, mtu int) (*wireguard.Device, error) {
	if device, is := t.opened(); is {
		return device, nil
	}
	c := t.kernel.config
	w := wireguard.Config{
		Device: c.Mesh.Device, Port: c.Mesh.Port, MTU: mtu, Mode: c.Mesh.Implementation,
		KeyFile: t.kernel.keyFile(), Log: t.kernel.log.With("part", "wireguard"),
	}
	if c.Mesh.Tunnel != TunnelExternal {
		w.TunnelCommand = []string{"/proc/self/exe", "tunnel"}
		w.TunnelLog = filepath.Join(c.StateDir, "tunnel.log")
	}
	device, err := wireguard.Open(ctx, w, t.kernel.router)
	if err != nil {
		return nil, c.Mesh.explain(err)
	}
	t.kernel.log.Info("WireGuard device is up", "device", c.Mesh.Device, "kind", device.Kind())
	t.kernel.mu.Lock()
	defer t.kernel.mu.Unlock()
	t.kernel.device = device
	return device, nil
}

func (t *tunnels) opened() (*wireguard.Device, bool) {
	t.kernel.mu.Lock()
	defer t.kernel.mu.Unlock()
	return t.kernel.device, t.kernel.device != nil
}

// deviceAddr returns the address that the tunnel's device gets; invalid if another device of the
// node has one.
func deviceAddr(s datapath.Sources) netip.Prefix {
	if !s.OnDevice {
		return netip.Prefix{}
	}
	return netip.PrefixFrom(s.Node, s.Node.BitLen())
}

// explain names the setting to change if the kernel does not support what it asks for.
func (m MeshConfig) explain(err error) error {
	if m.Implementation == wireguard.Kernel && errors.Is(err, errors.ErrUnsupported) {
		return fmt.Errorf("%w, or set mesh.implementation to %s", err, wireguard.Userspace)
	}
	return err
}
