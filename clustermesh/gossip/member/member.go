// Package member decides about the daemons that take part in gossip: what a member is called,
// whether its cluster's name belongs to its cluster (Clusters), who is one too many (Room), and where
// to look for missing members (Seeds).
//
// Inputs are names, addresses and times as arguments; outputs are values. It must not know
// memberlist, streams, records or the clock: packages pool and stream act.
package member

import (
	"fmt"
	"strconv"
	"strings"

	"strait.io/strait/clustermesh"
)

// ID identifies one life of a daemon. A restarted daemon is a new member, so that what was reported
// about its earlier life does not apply to this one: memberlist keeps no incarnation number across
// restarts.
type ID struct {
	Origin clustermesh.Origin
	// Boot is when this life began, in Unix nanoseconds.
	Boot uint64
}

// String returns the member's name: "cluster/node/boot", with boot in base 36.
func (m ID) String() string {
	return string(m.Origin.Cluster) + "/" + string(m.Origin.Node) + "/" + strconv.FormatUint(m.Boot, 36)
}

// Parse is the inverse of String.
func Parse(name string) (ID, error) {
	parts := strings.Split(name, "/")
	if len(parts) != 3 || parts[0] == "" || parts[1] == "" || len(name) > 400 {
		return ID{}, fmt.Errorf("member name %q: want CLUSTER/NODE/BOOT", name)
	}
	for _, r := range parts[0] + parts[1] {
		if r <= ' ' || r >= 0x7f {
			return ID{}, fmt.Errorf("member name %q: want letters, digits, dots and dashes", name)
		}
	}
	boot, err := strconv.ParseUint(parts[2], 36, 64)
	if err != nil {
		return ID{}, fmt.Errorf("member name %q: boot: %w", name, err)
	}
	return ID{clustermesh.Origin{
		Cluster: clustermesh.ClusterName(parts[0]), Node: clustermesh.NodeName(parts[1]),
	}, boot}, nil
}

// maxUID bounds a cluster's UID, in bytes. Kubernetes' UIDs have 36.
const maxUID = 64

// CheckUID returns an error unless a text can be the UID of a cluster, or is empty: a holder of the gossip
// key can make others remember UIDs, and show them.
func CheckUID(uid string) error {
	if len(uid) > maxUID {
		return fmt.Errorf("the UID of the cluster has %d bytes, and the limit is %d", len(uid), maxUID)
	}
	for _, r := range uid {
		if r <= ' ' || r >= 0x7f {
			return fmt.Errorf("the UID of the cluster, %q, has other characters than letters, digits and punctuation", uid)
		}
	}
	return nil
}

// Peer is a member with the UID of its cluster; empty if the cluster has none.
type Peer struct {
	ID
	UID string
}
