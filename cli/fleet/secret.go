package fleet

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"strait.io/strait/cli"
	"strait.io/strait/clustermesh"
	"strait.io/strait/clustermesh/authority"
	"strait.io/strait/install/cluster"
	"strait.io/strait/install/vault"
)

// secret is the vault of a cluster in Kubernetes: the Secrets and the ConfigMap that strait's pods
// mount.
type secret struct{ *cluster.Cluster }

var _ vault.Vault = secret{}

// secrets opens the vaults of contexts.
func secrets(t target, contexts []string) (out []vault.Vault, err error) {
	for _, name := range contexts {
		c, err := t.open(name)
		if err != nil {
			return nil, err
		}
		out = append(out, secret{c})
	}
	return out, nil
}

func (s secret) String() string { return inContext + s.Context }

const inContext = "context "

// contextOf returns the context of a vault, with which lines about a cluster begin.
func contextOf(v vault.Vault) string { return strings.TrimPrefix(v.String(), inContext) }

// ReadKeys is that of vault.Vault. Pins are nil if every holder of the gossip key is trusted.
func (s secret) ReadKeys(ctx context.Context) (k vault.Keys, err error) {
	text, err := s.Cluster.ReadKeys(ctx)
	if err != nil {
		return k, err
	}
	id, err := s.ID(ctx)
	if err != nil {
		return k, err
	}
	k.Own = clustermesh.ClusterName(id)
	if len(text.Root) > 0 {
		if k.Root, err = authority.ParsePrivate(strings.TrimSpace(string(text.Root))); err != nil {
			return k, s.wrong("root.key", err)
		}
	}
	if len(text.Next) > 0 {
		next, err := authority.ParsePrivate(strings.TrimSpace(string(text.Next)))
		if err != nil {
			return k, s.wrong("root.key.next", err)
		}
		k.Next = &next
	}
	if len(text.Pins) > 0 {
		if k.Pins, err = authority.ParsePins(text.Pins); err != nil {
			return k, s.wrong("pins.yaml", err)
		}
	}
	return k, nil
}

func (s secret) wrong(entry string, err error) error {
	return fmt.Errorf("context %s: namespace %s: Secret %s and ConfigMap %s: %s: %w", s.Context, s.Namespace, cluster.KeysSecret, cluster.PinsConfigMap, entry, err)
}

// WriteKeys is that of vault.Vault. Daemons follow within seconds.
func (s secret) WriteKeys(ctx context.Context, k vault.Keys) error {
	text := cluster.Keys{Pins: k.Pins.Encode()}
	if k.Root != (authority.PrivateKey{}) {
		text.Root = []byte(k.Root.Base64() + "\n")
	}
	if k.Next != nil {
		text.Next = []byte(k.Next.Base64() + "\n")
	}
	if _, err := s.Cluster.WriteKeys(ctx, text); err != nil {
		return err
	}
	return s.Nudge(ctx)
}

// ReadGossip is that of vault.Vault.
func (s secret) ReadGossip(ctx context.Context) (vault.Gossip, error) {
	k, err := s.ReadGossipKeys(ctx)
	return vault.Gossip(k), err
}

// WriteGossip is that of vault.Vault.
func (s secret) WriteGossip(ctx context.Context, g vault.Gossip) error {
	if err := s.WriteGossipKeys(ctx, cluster.GossipKeys(g)); err != nil {
		return err
	}
	return s.Nudge(ctx)
}

// asUsage gives what a procedure cannot be asked for the exit code of a wrong command line.
func asUsage(err error) error {
	var misuse vault.Misuse
	if errors.As(err, &misuse) {
		return cli.UsageError("%w", err)
	}
	return err
}

// pinsNothing is the error about a cluster that has no pins to change.
func pinsNothing(v vault.Vault) error {
	return vault.Misuse(fmt.Sprintf("%s pins nothing; every holder of the gossip key is trusted: strait clusterset connect pins", v))
}
