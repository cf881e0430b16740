package gossip

import (
	"fmt"
	"net/netip"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/hashicorp/memberlist"

	"strait.io/strait/clustermesh"
)

// member is one life of a daemon. A restarted daemon is a new member, so that what was said of its
// earlier life (memberlist keeps no incarnation across restarts) does not hold for this.
type member struct {
	origin clustermesh.Origin
	boot   uint64
}

// String is the member's name: "cluster/node/boot", the boot in base 36.
func (m member) String() string {
	return string(m.origin.Cluster) + "/" + string(m.origin.Node) + "/" + strconv.FormatUint(m.boot, 36)
}

func parseMember(name string) (member, error) {
	parts := strings.Split(name, "/")
	if len(parts) != 3 || parts[0] == "" || parts[1] == "" || len(name) > 400 {
		return member{}, fmt.Errorf("member name %q: want CLUSTER/NODE/BOOT", name)
	}
	for _, r := range parts[0] + parts[1] {
		if r <= ' ' || r >= 0x7f {
			return member{}, fmt.Errorf("member name %q: want letters, digits, dots and dashes", name)
		}
	}
	boot, err := strconv.ParseUint(parts[2], 36, 64)
	if err != nil {
		return member{}, fmt.Errorf("member name %q: boot: %w", name, err)
	}
	return member{clustermesh.Origin{
		Cluster: clustermesh.ClusterName(parts[0]), Node: clustermesh.NodeName(parts[1]),
	}, boot}, nil
}

// peer is a member with the UID of its cluster, empty where that has none.
type peer struct {
	member
	uid string
}

// memberEvent is a member that joined or is gone, or was refused since its name belongs to another cluster.
type memberEvent struct {
	member  member
	addr    netip.AddrPort
	alive   bool
	refused *refusal
}

// refusal is why a member was refused: its cluster's name belongs to the cluster with UID owner.
type refusal struct{ uid, owner string }

// inbox takes memberlist's events, which come with memberlist's lock held and must not wait for ours.
type inbox struct {
	mu     sync.Mutex
	events []memberEvent
	ready  chan struct{}
}

func (i *inbox) put(n *memberlist.Node, alive bool, refused *refusal) {
	m, err := parseMember(n.Name)
	if err != nil {
		return // NotifyAlive has refused it
	}
	addr, _ := netip.AddrFromSlice(n.Addr)
	i.mu.Lock()
	i.events = append(i.events, memberEvent{m, netip.AddrPortFrom(addr.Unmap(), n.Port), alive, refused})
	i.mu.Unlock()
	poke(i.ready)
}

func (i *inbox) take() []memberEvent {
	i.mu.Lock()
	defer i.mu.Unlock()
	events := i.events
	i.events = nil
	return events
}

// delegate is what memberlist calls.
type delegate struct {
	inbox *inbox
	uids  *uids
	uid   string // of this cluster
}

// NotifyJoin implements memberlist.EventDelegate.
func (d delegate) NotifyJoin(n *memberlist.Node) { d.inbox.put(n, true, nil) }

// NotifyLeave implements memberlist.EventDelegate.
func (d delegate) NotifyLeave(n *memberlist.Node) { d.inbox.put(n, false, nil) }

// NotifyUpdate implements memberlist.EventDelegate. A member's metadata never changes.
func (d delegate) NotifyUpdate(*memberlist.Node) {}

// NotifyAlive implements memberlist.AliveDelegate: it refuses members whose name is none of strait's, and those
// whose cluster has the name of another.
func (d delegate) NotifyAlive(n *memberlist.Node) error {
	m, err := parseMember(n.Name)
	if err != nil {
		return err
	}
	uid := string(n.Meta)
	if other, ok := d.uids.admit(m.origin.Cluster, uid, time.Now()); !ok {
		d.inbox.put(n, false, &refusal{uid, other})
		return errOtherCluster
	}
	return nil
}

// NodeMeta implements memberlist.Delegate: a member carries the UID of its cluster.
func (d delegate) NodeMeta(int) []byte { return []byte(d.uid) }

// NotifyMsg implements memberlist.Delegate. Records have streams of their own.
func (d delegate) NotifyMsg([]byte) {}

// GetBroadcasts implements memberlist.Delegate.
func (d delegate) GetBroadcasts(int, int) [][]byte { return nil }

// LocalState implements memberlist.Delegate.
func (d delegate) LocalState(bool) []byte { return nil }

// MergeRemoteState implements memberlist.Delegate.
func (d delegate) MergeRemoteState([]byte, bool) {}
