package pool

import (
	"net/netip"

	"github.com/hashicorp/memberlist"

	"strait.io/strait/clustermesh/gossip/member"
)

// delegate is what memberlist calls.
type delegate struct {
	inbox *inbox
	admit func(member.Peer) (owner string, ok bool)
	uid   string // of this cluster
}

// event says of a memberlist node what we want to know. NotifyAlive has refused those without a proper name.
func event(n *memberlist.Node) (Event, error) {
	m, err := member.Parse(n.Name)
	addr, _ := netip.AddrFromSlice(n.Addr)
	return Event{
		Member: member.Peer{ID: m, UID: string(n.Meta)},
		Addr:   netip.AddrPortFrom(addr.Unmap(), n.Port),
	}, err
}

// NotifyJoin implements memberlist.EventDelegate.
func (d delegate) NotifyJoin(n *memberlist.Node) {
	if e, err := event(n); err == nil {
		e.Alive = true
		d.inbox.put(e)
	}
}

// NotifyLeave implements memberlist.EventDelegate.
func (d delegate) NotifyLeave(n *memberlist.Node) {
	if e, err := event(n); err == nil {
		d.inbox.put(e)
	}
}

// NotifyUpdate implements memberlist.EventDelegate. A member's metadata never changes.
func (d delegate) NotifyUpdate(*memberlist.Node) {}

// NotifyAlive implements memberlist.AliveDelegate: it refuses members whose names are not strait's, and those
// whose cluster has the name of another.
func (d delegate) NotifyAlive(n *memberlist.Node) error {
	e, err := event(n)
	if err != nil {
		return err
	}
	if owner, ok := d.admit(e.Member); !ok {
		e.Owner = owner
		d.inbox.put(e)
		return member.ErrOtherCluster
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
