package pool

import (
	"encoding/binary"
	"errors"
	"net/netip"
	"time"

	"github.com/hashicorp/memberlist"

	"strait.io/strait/clustermesh/gossip/member"
)

// delegate implements the interfaces that memberlist calls.
type delegate struct {
	inbox   *inbox
	admit   func(member.Peer) (owner string, ok bool)
	seats   Seats
	refused func(member.Refusal, netip.Addr)
	uid     string // of this cluster
	// pinged is Config.Pinged.
	pinged func(m member.ID, at netip.Addr, rtt time.Duration, there time.Time)
}

// event converts a memberlist node. The error is for a name or UID that is not strait's; NotifyAlive
// refuses such members.
func event(n *memberlist.Node) (Event, error) {
	m, err := member.Parse(n.Name)
	if err == nil {
		err = member.CheckUID(string(n.Meta))
	}
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
		d.seats.Joined(e.Member.ID)
		d.inbox.moved(e, +1)
	}
}

// NotifyLeave implements memberlist.EventDelegate.
func (d delegate) NotifyLeave(n *memberlist.Node) {
	if e, err := event(n); err == nil {
		d.seats.Left(e.Member.ID)
		d.inbox.moved(e, -1)
	}
}

// NotifyUpdate implements memberlist.EventDelegate. A member's metadata never changes.
func (d delegate) NotifyUpdate(*memberlist.Node) {}

// errCrowd refuses a member for which there is no room.
var errCrowd = errors.New("there are too many members")

// errVersions refuses a member that memberlist here does not understand.
var errVersions = errors.New("its daemon is not strait's, by its protocol versions")

// understands reports whether memberlist here and a member can talk. memberlist accepts the member all the
// same, and then fails every exchange of members, because it compares the versions of all.
func understands(n *memberlist.Node) bool {
	const protocol = memberlist.ProtocolVersion2Compatible
	return n.PMin <= protocol && n.PMax >= protocol && n.PCur == protocol && n.DMin == 0 && n.DCur == 0
}

// NotifyAlive implements memberlist.AliveDelegate. It refuses members whose names are not strait's,
// those that use other versions, those for which there is no room, and those whose cluster's name
// belongs to another cluster.
func (d delegate) NotifyAlive(n *memberlist.Node) error {
	e, err := event(n)
	if err != nil {
		return err
	}
	if !understands(n) {
		d.refused(member.Unusual, e.Addr.Addr())
		return errVersions
	}
	if !d.seats.Admit(e.Member.ID) {
		d.refused(member.TooMany, e.Addr.Addr())
		return errCrowd
	}
	if owner, ok := d.admit(e.Member); !ok {
		e.Owner = owner
		d.inbox.put(e)
		return member.ErrOtherCluster
	}
	return nil
}

// AckPayload implements memberlist.PingDelegate. It adds to the answers to pings what this machine's clock
// shows, in Unix nanoseconds.
func (d delegate) AckPayload() []byte {
	return binary.BigEndian.AppendUint64(nil, uint64(time.Now().UnixNano()))
}

// NotifyPingComplete implements memberlist.PingDelegate. It is called for pings over UDP.
func (d delegate) NotifyPingComplete(n *memberlist.Node, rtt time.Duration, payload []byte) {
	if e, err := event(n); err == nil {
		d.pinged(e.Member.ID, e.Addr.Addr(), rtt, shownBy(payload))
	}
}

// shownBy returns the time in the answer to a ping; zero if there is none, as in that of an older daemon.
func shownBy(payload []byte) time.Time {
	if len(payload) != 8 {
		return time.Time{}
	}
	return time.Unix(0, int64(binary.BigEndian.Uint64(payload)))
}

// NodeMeta implements memberlist.Delegate. It returns the UID of our cluster.
func (d delegate) NodeMeta(int) []byte { return []byte(d.uid) }

// NotifyMsg implements memberlist.Delegate. It is unused: records have their own streams.
func (d delegate) NotifyMsg([]byte) {}

// GetBroadcasts implements memberlist.Delegate.
func (d delegate) GetBroadcasts(int, int) [][]byte { return nil }

// LocalState implements memberlist.Delegate.
func (d delegate) LocalState(bool) []byte { return nil }

// MergeRemoteState implements memberlist.Delegate.
func (d delegate) MergeRemoteState([]byte, bool) {}
