package vault

import (
	"fmt"
	"maps"
	"slices"

	"strait.io/strait/clustermesh"
	"strait.io/strait/daemon/api"
)

// Evict returns the keys without the pin of another cluster. Pinned is false if there is none.
func (k Keys) Evict(id clustermesh.ClusterName) (out Keys, pinned bool, err error) {
	if id == k.Own {
		return k, false, Misuse(fmt.Sprintf("%s is this cluster; evict it in the others", id))
	}
	if _, pinned = k.Pins[id]; !pinned {
		return k, false, nil
	}
	pins := maps.Clone(k.Pins)
	delete(pins, id)
	k.Pins = pins
	return k, true, nil
}

// Revoke returns the keys with the key of a node of this cluster revoked in its own pin.
func (k Keys) Revoke(fingerprint string) (Keys, error) {
	pins := maps.Clone(k.Pins)
	pin := pins[k.Own]
	if slices.Contains(pin.Revoked, fingerprint) {
		return k, Misuse(fmt.Sprintf("the key %s is revoked already", fingerprint))
	}
	pin.Revoked = append(slices.Clip(pin.Revoked), fingerprint)
	pins[k.Own] = pin
	k.Pins = pins
	return k, nil
}

// KeyOf returns the fingerprint of the key with which a node of a cluster signs, as a daemon sees
// it; "" if it knows none. Self is true if the daemon is that of the node, which may lie about
// itself.
func KeyOf(l api.MemberList, cluster clustermesh.ClusterName, node string) (fingerprint string, self bool) {
	for _, m := range l.Items {
		if m.Cluster == string(cluster) && m.Node == node && len(m.Keys) == 1 {
			return m.Keys[0], m.State == api.Self
		}
	}
	return "", false
}
