package gossip

import (
	"fmt"

	"strait.io/strait/internal/gossipkey"
	"strait.io/strait/internal/keyfile"
)

// LoadKeys reads a file with the gossip key, or with two while one replaces the other. Other users of
// the machine must not have access to it. Errors never contain a key.
func LoadKeys(path string) (gossipkey.Ring, error) {
	text, err := keyfile.Read(path, keyfile.AllUsers)
	if err != nil {
		return nil, fmt.Errorf("gossip key: %w", err)
	}
	keys, err := gossipkey.Parse(text)
	if err != nil {
		return nil, fmt.Errorf("gossip key %s: %w", path, err)
	}
	return keys, nil
}

// Rekey replaces the gossip keys that are accepted, and the one that is used. Daemons that share a key
// before and after it hear each other all the time. Others do not any more.
func (g *Gossip) Rekey(keys gossipkey.Ring) error {
	g.rekeying.Lock()
	defer g.rekeying.Unlock()
	if g.pool != nil {
		if err := g.pool.Rekey(keys); err != nil {
			return fmt.Errorf("gossip: use the keys: %w", err)
		}
	}
	g.cfg.Keys = keys
	return g.streams.Rekey(keys)
}
