package fleet

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"

	"github.com/spf13/cobra"

	"strait.io/strait/clustermesh"
	"strait.io/strait/clustermesh/authority"
	"strait.io/strait/internal/durable"
	"strait.io/strait/internal/gossipkey"
	"strait.io/strait/internal/keyfile"
)

// defaultKeys is the directory where straitd's configuration has its keys by default.
const defaultKeys = "/etc/strait"

// keyDir is the directory with the keys and pins of a cluster outside Kubernetes.
type keyDir string

func (d keyDir) root() string { return filepath.Join(string(d), "root.key") }

func (d keyDir) gossip() string { return filepath.Join(string(d), "gossip.key") }

func (d keyDir) pins() string { return filepath.Join(string(d), "pins.yaml") }

func (d keyDir) seeds() string { return filepath.Join(string(d), "seeds") }

func (d *keyDir) flag(c *cobra.Command) {
	c.Flags().StringVar((*string)(d), "dir", defaultKeys, "`directory` of the keys and pins of this cluster")
}

// settle writes the root and the pins of a new cluster. It replaces neither.
func (d keyDir) settle(root authority.PrivateKey, pins authority.Pins) error {
	err := keyfile.Create(d.root(), root.Base64())
	if errors.Is(err, fs.ErrExist) {
		return fmt.Errorf("%s exists: this machine has the keys of a cluster already; give another --dir, or remove it if that cluster is gone for good", d.root())
	}
	if err != nil {
		return fmt.Errorf("write the root key: %w", err)
	}
	return d.writePins(pins)
}

func (d keyDir) writePins(pins authority.Pins) error {
	return durable.Replace(d.pins(), func(f *os.File) error {
		_, err := fmt.Fprintf(f, "# The clusters that this one believes. Change it with strait clusterset, or by hand.\n%s", pins.Encode())
		return err
	})
}

// read returns the pins, the root key, and which cluster this is.
func (d keyDir) read() (pins authority.Pins, root authority.PrivateKey, own clustermesh.ClusterName, err error) {
	text, err := keyfile.Read(d.root(), keyfile.AllUsers)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, root, "", fmt.Errorf("%w: this machine has no root key; make one with strait clusterset init, or accept an invitation", err)
	}
	if err == nil {
		root, err = authority.ParsePrivate(text)
	}
	if err != nil {
		return nil, root, "", fmt.Errorf("root key %s: %w", d.root(), err)
	}
	if pins, err = readPins(d.pins()); err != nil {
		return nil, root, "", err
	}
	for c, p := range pins {
		if slices.Contains(p.Roots, root.Public()) {
			return pins, root, c, nil
		}
	}
	return nil, root, "", fmt.Errorf("%s does not list the cluster of %s, whose fingerprint is %s", d.pins(), d.root(), root.Public().Fingerprint())
}

func readPins(path string) (authority.Pins, error) {
	text, err := os.ReadFile(path)
	if err != nil {
		return nil, fmt.Errorf("pins: %w", err)
	}
	pins, err := authority.ParsePins(text)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", path, err)
	}
	return pins, nil
}

func (d keyDir) nextRoot() string { return d.root() + ".next" }

func (d keyDir) nextGossip() string { return d.gossip() + ".next" }

// oneGossipKey returns the gossip key of the directory, unless one is just being replaced.
func oneGossipKey(text string) (string, error) {
	ring, err := gossipkey.Parse(text)
	if err == nil && len(ring) > 1 {
		err = errors.New("it is being replaced; finish that first: strait clusterset rotate --gossip-key")
	}
	if err != nil {
		return "", fmt.Errorf("gossip key: %w", err)
	}
	return ring[0].Base64(), nil
}
