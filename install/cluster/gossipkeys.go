package cluster

import (
	"context"
	"encoding/json"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"strait.io/strait/install/bundle"
	"strait.io/strait/internal/gossipkey"
)

// nextGossipKey is the entry of the Secret with the key that replaces the gossip key, while it does.
const nextGossipKey = "gossip.key.next"

// GossipKeys are the gossip keys of a cluster's daemons. Next is the one that replaces the other; nil
// if none does.
type GossipKeys struct {
	Ring gossipkey.Ring
	Next *gossipkey.Key
}

// ReadGossipKeys reads them from the Secret that the daemons mount.
func (c *Cluster) ReadGossipKeys(ctx context.Context) (k GossipKeys, err error) {
	s, err := get[corev1.Secret](ctx, c, secrets, c.Namespace, SecretName)
	if err != nil {
		return k, fmt.Errorf("context %s: read Secret %s/%s: %w", c.Context, c.Namespace, SecretName, err)
	}
	if k.Ring, err = gossipkey.Parse(string(s.Data["gossip.key"])); err != nil {
		return k, fmt.Errorf("context %s: Secret %s/%s: gossip.key: %w", c.Context, c.Namespace, SecretName, err)
	}
	text, replaced := s.Data[nextGossipKey]
	if !replaced {
		return k, nil
	}
	next, err := gossipkey.Parse(string(text))
	if err != nil || len(next) != 1 {
		return k, fmt.Errorf("context %s: Secret %s/%s: %s: want one key of 32 bytes in base64; remove the entry", c.Context, c.Namespace, SecretName, nextGossipKey)
	}
	k.Next = &next[0]
	return k, nil
}

// WriteGossipKeys writes them to that Secret. What else it holds stays.
func (c *Cluster) WriteGossipKeys(ctx context.Context, k GossipKeys) error {
	data := map[string]any{"gossip.key": []byte(k.Ring.Text()), nextGossipKey: nil}
	if k.Next != nil {
		data[nextGossipKey] = []byte(k.Next.Base64() + "\n")
	}
	text, err := json.Marshal(map[string]any{"data": data})
	if err != nil {
		return err
	}
	_, err = c.objects.Resource(secrets).Namespace(c.Namespace).Patch(ctx, SecretName, types.MergePatchType, text, metav1.PatchOptions{FieldManager: Manager})
	if err != nil {
		return fmt.Errorf("context %s: write Secret %s/%s: %w", c.Context, c.Namespace, SecretName, err)
	}
	return nil
}

// oneKey returns the gossip key of a Secret, unless one is just being replaced.
func oneKey(text []byte) (bundle.Key, error) {
	if len(text) == 0 {
		return "", nil
	}
	ring, err := gossipkey.Parse(string(text))
	if err != nil {
		return "", fmt.Errorf("gossip.key: %w", err)
	}
	if len(ring) > 1 {
		return "", fmt.Errorf("the gossip key is being replaced; finish that first: strait clusterset rotate --gossip-key, with all contexts")
	}
	return bundle.Key(ring[0].Base64()), nil
}
