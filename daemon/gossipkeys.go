package daemon

import (
	"errors"
	"fmt"
	"io/fs"
	"slices"

	"strait.io/strait/clustermesh/gossip"
	"strait.io/strait/internal/gossipkey"
)

// loadGossipKeys reads the gossip keys. If the file is missing, the error has the command that makes a key.
func loadGossipKeys(c Config) (gossipkey.Ring, error) {
	keys, err := gossip.LoadKeys(c.Gossip.KeyFile)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, fmt.Errorf("gossip.keyFile: %w; make one for the whole clusterset: head -c 32 /dev/urandom | base64 | install -m 0600 /dev/stdin %s", err, c.Gossip.KeyFile)
	}
	if err != nil {
		return nil, fmt.Errorf("gossip.keyFile: %w", err)
	}
	return keys, nil
}

// rekey has gossip use keys that changed.
func (d *Daemon) rekey(_ string, keys gossipkey.Ring) error {
	if slices.Equal(keys, d.files.keys.Get()) {
		return nil
	}
	if err := d.gossip.Rekey(keys); err != nil {
		return err
	}
	d.log.Info("the gossip keys changed", "keys", keys.Fingerprints())
	return nil
}
