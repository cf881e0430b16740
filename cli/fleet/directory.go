package fleet

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"strings"

	"strait.io/strait/cli"
	"strait.io/strait/clustermesh/authority"
	"strait.io/strait/daemon/api"
	"strait.io/strait/daemon/api/client"
	"strait.io/strait/install/vault"
	"strait.io/strait/internal/durable"
	"strait.io/strait/internal/gossipkey"
	"strait.io/strait/internal/keyfile"
)

// directory is the vault of a cluster outside Kubernetes. People copy what changes to other
// machines. The daemon of this machine is the one that can be asked.
type directory struct {
	keyDir
	app *cli.App
}

var _ vault.Vault = directory{}

func (d directory) String() string { return string(d.keyDir) }

// ReadKeys is that of vault.Vault.
func (d directory) ReadKeys(context.Context) (k vault.Keys, err error) {
	if k.Pins, k.Root, k.Own, err = d.read(); err != nil {
		return k, err
	}
	text, err := keyfile.Read(d.nextRoot(), keyfile.AnyOther)
	if errors.Is(err, fs.ErrNotExist) {
		return k, nil
	}
	if err != nil {
		return k, fmt.Errorf("the new root key: %w", err)
	}
	next, err := authority.ParsePrivate(text)
	if err != nil {
		return k, fmt.Errorf("the new root key %s: %w", d.nextRoot(), err)
	}
	k.Next = &next
	return k, nil
}

// WriteKeys is that of vault.Vault. A directory keeps no copy of the new root once that is the
// root.
func (d directory) WriteKeys(_ context.Context, k vault.Keys) error {
	if err := d.writePins(k.Pins); err != nil {
		return err
	}
	next := ""
	if k.Next != nil && *k.Next != k.Root {
		next = k.Next.Base64()
	}
	if err := keepText(d.root(), k.Root.Base64()); err != nil {
		return err
	}
	return keepText(d.nextRoot(), next)
}

// ReadGossip is that of vault.Vault.
func (d directory) ReadGossip(context.Context) (g vault.Gossip, err error) {
	text, err := keyfile.Read(d.gossip(), keyfile.AllUsers)
	if err != nil {
		return g, fmt.Errorf("gossip key: %w", err)
	}
	if g.Ring, err = gossipkey.Parse(text); err != nil {
		return g, fmt.Errorf("gossip key %s: %w", d.gossip(), err)
	}
	text, err = keyfile.Read(d.nextGossip(), keyfile.AnyOther)
	if errors.Is(err, fs.ErrNotExist) {
		return g, nil
	}
	if err != nil {
		return g, fmt.Errorf("the new gossip key: %w", err)
	}
	made, err := gossipkey.Parse(text)
	if err != nil {
		return g, fmt.Errorf("the new gossip key %s: %w", d.nextGossip(), err)
	}
	g.Next = &made[0]
	return g, nil
}

// WriteGossip is that of vault.Vault. The next key is there before a ring has it.
func (d directory) WriteGossip(_ context.Context, g vault.Gossip) error {
	if g.Next != nil {
		if err := keepText(d.nextGossip(), g.Next.Base64()); err != nil {
			return err
		}
	}
	if err := keepText(d.gossip(), g.Ring.Text()); err != nil || g.Next != nil {
		return err
	}
	return keepText(d.nextGossip(), "")
}

// Members is that of vault.Vault.
func (d directory) Members(ctx context.Context) (map[string]api.MemberList, error) {
	list, err := cli.AskHere(ctx, d.app, (*client.Client).Members)
	if err != nil {
		return nil, err
	}
	return map[string]api.MemberList{list.SeenFrom.Node: *list}, nil
}

// keepText replaces a file unless it has the text; without a text, it removes the file.
func keepText(path, text string) error {
	if text == "" {
		if err := os.Remove(path); !errors.Is(err, fs.ErrNotExist) {
			return err
		}
		return nil
	}
	have, err := os.ReadFile(path)
	if err == nil && strings.TrimSpace(string(have)) == strings.TrimSpace(text) {
		return nil
	}
	return durable.Replace(path, func(f *os.File) error {
		_, err := f.WriteString(strings.TrimSpace(text) + "\n")
		return err
	})
}
