package daemon

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"time"

	"strait.io/strait/daemon/identity"
	"strait.io/strait/internal/durable"
)

const (
	// identityFile stores this node's identity, for a start while the API server is away.
	identityFile = "identity.json"
	// identityPatience is how long a starting daemon waits for the API server before it uses
	// identityFile.
	identityPatience = 5 * time.Second
	// identityRemind is how often the daemon logs what it is waiting for.
	identityRemind = 10 * time.Second
)

// who is this node's identity, as other nodes know it.
type who = identity.Who

// identity returns the part of the config about this node's identity.
func (c Config) identity() identity.Config {
	return identity.Config{Cluster: c.Cluster, Node: c.Node, Advertise: fixedAdvertise(c), Port: c.Gossip.Bind.Port()}
}

// waitWho waits until this node's identity is known.
func (k *kubernetes) waitWho(ctx context.Context, d *Daemon) (who, error) {
	last, err := loadWho(d.config.StateDir)
	if err != nil {
		d.log.Warn("cannot read this node's last identity", "err", err)
	}
	start, logged := time.Now(), time.Time{}
	for {
		// This loop polls, because the source's Changed channel belongs to the loop that runs after
		// it.
		w, waiting, err := identity.Decide(d.config.identity(), k.source.Identity(), last, time.Since(start) > identityPatience)
		if err != nil {
			return who{}, err
		}
		if waiting == "" {
			return w, d.remember(w, last)
		}
		if now := time.Now(); now.Sub(start) > time.Second && now.Sub(logged) > identityRemind {
			logged = now
			local, _ := d.source.Local()
			d.log.Warn("cannot start yet", "waiting", waiting, "apiserver", k.host)
			for _, p := range local.Problems {
				d.log.Warn("problem", "code", p.Code, "what", p.String())
			}
		}
		select {
		case <-ctx.Done():
			return who{}, ctx.Err()
		case <-time.After(100 * time.Millisecond):
		}
	}
}

// remember saves this node's identity if it changed, and logs the previous one.
func (d *Daemon) remember(w, last who) error {
	if w == last {
		return nil
	}
	if last.Cluster != "" {
		d.log.Warn("this node had another identity", "cluster", last.Cluster, "uid", last.UID, "advertise", last.Advertise)
	}
	b, err := json.Marshal(w)
	if err == nil {
		err = durable.Replace(filepath.Join(d.config.StateDir, identityFile), func(f *os.File) error {
			_, err := f.Write(b)
			return err
		})
	}
	if err != nil {
		return fmt.Errorf("stateDir: save this node's identity: %w", err)
	}
	return nil
}

// maxIdentity bounds that file, in bytes.
const maxIdentity = 64 << 10

func loadWho(dir string) (w who, err error) {
	b, err := durable.Read(filepath.Join(dir, identityFile), maxIdentity)
	if errors.Is(err, fs.ErrNotExist) {
		return who{}, nil
	}
	if err == nil {
		err = json.Unmarshal(b, &w)
	}
	if err != nil {
		return who{}, fmt.Errorf("read %s: %w", identityFile, err)
	}
	return w, nil
}
