package gossip

import (
	"fmt"
	"net/netip"
	"strconv"
	"strings"
	"sync"

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

// memberEvent is a member that joined or is gone.
type memberEvent struct {
	member member
	addr   netip.AddrPort
	alive  bool
}

// inbox takes memberlist's events, which come with memberlist's lock held and must not wait for ours.
type inbox struct {
	mu     sync.Mutex
	events []memberEvent
	ready  chan struct{}
}

func (i *inbox) put(n *memberlist.Node, alive bool) {
	m, err := parseMember(n.Name)
	if err != nil {
		return // NotifyAlive has refused it
	}
	addr, _ := netip.AddrFromSlice(n.Addr)
	i.mu.Lock()
	i.events = append(i.events, memberEvent{m, netip.AddrPortFrom(addr.Unmap(), n.Port), alive})
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
type delegate struct{ inbox *inbox }

// NotifyJoin implements memberlist.EventDelegate.
func (d delegate) NotifyJoin(n *memberlist.Node) { d.inbox.put(n, true) }

// NotifyLeave implements memberlist.EventDelegate.
func (d delegate) NotifyLeave(n *memberlist.Node) { d.inbox.put(n, false) }

// NotifyUpdate implements memberlist.EventDelegate. Members carry no metadata.
func (d delegate) NotifyUpdate(*memberlist.Node) {}

// NotifyAlive implements memberlist.AliveDelegate: it refuses members whose name is none of strait's.
func (d delegate) NotifyAlive(n *memberlist.Node) error {
	_, err := parseMember(n.Name)
	return err
}
