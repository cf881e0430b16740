package daemon

import (
	"errors"
	"fmt"
	"io/fs"
	"slices"

	"strait.io/strait/clustermesh"
	"strait.io/strait/clustermesh/gossip"
	"strait.io/strait/internal/gossipkey"
	"strait.io/strait/internal/notify"
	"strait.io/strait/internal/problem"
)

// loadGossipKeys reads the gossip keys. If the file is missing, the error says how to make a key.
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

// gossipKeys are the gossip keys in force, and the file that they were read from.
type gossipKeys struct {
	file *watched
	keys gossipkey.Ring
	text string // of the file
}

func watchGossipKeys(c Config, changed notify.Signal) (gossipKeys, error) {
	s := gossipKeys{file: watchFile(c.Gossip.KeyFile, changed)}
	s.text, _ = s.file.text() // loading says what is wrong
	var err error
	s.keys, err = loadGossipKeys(c)
	return s, err
}

// rekey tells gossip about keys that changed, and reports what is wrong with their file. The last keys
// that were right stay in force.
func (d *Daemon) rekey() []clustermesh.Problem {
	text, err := d.shared.file.text()
	if err == nil && text != d.shared.text {
		var keys gossipkey.Ring
		if keys, err = loadGossipKeys(d.config); err == nil && !slices.Equal(keys, d.shared.keys) {
			if err = d.gossip.Rekey(keys); err == nil {
				d.log.Info("the gossip keys changed", "keys", keys.Fingerprints())
			}
		}
		if err == nil {
			d.shared.text, d.shared.keys = text, keys
		}
	}
	if err == nil {
		return nil
	}
	return []clustermesh.Problem{{
		Code: problem.GossipKeyUnreadable, Object: "gossip key", Field: "gossip.keyFile", File: d.config.Gossip.KeyFile,
		Message: "cannot be used, so the last one stays in force: " + err.Error(),
		Try:     "copy the file from another machine of the clusterset again",
	}}
}
