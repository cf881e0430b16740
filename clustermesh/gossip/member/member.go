// Package member holds what is known of the daemons that take part in gossip, and decides what follows
// from it: what a member is called, whether its cluster is the one of that name (Clusters), and where to
// look for members that are missing (Seeds).
//
// Inputs are names, addresses and times as arguments; outputs are values. It must not know memberlist,
// streams, records or the clock: packages pool and stream act.
package member

import (
	"fmt"
	"strconv"
	"strings"

	"strait.io/strait/clustermesh"
)

// ID is one life of a daemon. A restarted daemon is a new member, so that what was said of its
// earlier life (memberlist keeps no incarnation across restarts) does not hold for this.
type ID struct {
	Origin clustermesh.Origin
	// Boot is when the life began, in Unix nanoseconds.
	Boot uint64
}

// String is the member's name: "cluster/node/boot", the boot in base 36.
func (m ID) String() string {
	return string(m.Origin.Cluster) + "/" + string(m.Origin.Node) + "/" + strconv.FormatUint(m.Boot, 36)
}

// Parse reads what String wrote.
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

// Peer is a member with the UID of its cluster, empty where that has none.
type Peer struct {
	ID
	UID string
}
