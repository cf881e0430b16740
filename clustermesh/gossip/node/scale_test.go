package node

import (
	"fmt"
	"net/netip"
	"testing"
	"time"

	"strait.io/strait/clustermesh"
	"strait.io/strait/clustermesh/authority"
	"strait.io/strait/clustermesh/gossip/member"
	"strait.io/strait/clustermesh/replica"
	"strait.io/strait/clustermesh/trust"
)

// large is a node among 10,000, in 100 clusters of 100, that hears all others.
type large struct {
	*Node
	now     time.Time
	others  []clustermesh.Origin
	peers   []member.Peer
	streams []member.ID // from those to which there is one
	records clustermesh.Draft[clustermesh.Record]
}

func newLarge(tb testing.TB, clusters, nodes int, pinned bool) *large {
	tb.Helper()
	l := &large{now: at}
	self := origin("c000", "n000")
	var saved Saved
	for c := range clusters {
		names := make([]clustermesh.NodeName, nodes)
		for n := range nodes {
			names[n] = clustermesh.NodeName(fmt.Sprintf("n%03d", n))
			o := clustermesh.Origin{Cluster: clustermesh.ClusterName(fmt.Sprintf("c%03d", c)), Node: names[n]}
			saved.Records = append(saved.Records, l.entry(tb, o, numbered(o, c, n, 0), 1))
			if o != self {
				l.others = append(l.others, o)
			}
		}
		o := clustermesh.Origin{Cluster: clustermesh.ClusterName(fmt.Sprintf("c%03d", c))}
		saved.Records = append(saved.Records, l.entry(tb, o, clustermesh.Content{Nodes: names, AsOf: at.Unix()}, 1))
	}
	cfg := config(self, at)
	if pinned {
		cfg = l.signing(cfg, clusters)
	}
	l.Node = New(cfg, saved, at)
	l.SetRunning(true, at)
	var events []MemberEvent
	for _, o := range l.others {
		p := member.Peer{ID: member.ID{Origin: o, Boot: l.records.Get(o).Stamp.Epoch}}
		l.peers = append(l.peers, p)
		events = append(events, MemberEvent{Member: p, Addr: l.where(o), Alive: true})
	}
	l.Beat(events, nil, l.now)
	all := &replica.Links{}
	for c := range clusters {
		all.Heard = append(all.Heard, clustermesh.ClusterName(fmt.Sprintf("c%03d", c)))
	}
	for i, p := range l.peers {
		switch own := p.Origin.Cluster == self.Cluster; {
		case l.replica.IsNeighbour(p.Origin):
			s := l.hear(tb, i)
			l.streams = append(l.streams, p.ID)
			if own { // the others are heard by relays
				s.Receive(all, l.now)
			}
		case own:
			l.contacts.Met(p.ID, l.now)
		}
		l.Pinged(p.ID, l.where(p.Origin).Addr(), 20*time.Millisecond, l.now, l.now)
	}
	l.publishOwn()
	l.pass(3 * time.Second)
	return l
}

// signing returns the configuration of a node that believes all clusters by pins. What is signed is
// not verified.
func (l *large) signing(c Config, clusters int) Config {
	pins := authority.Pins{}
	for i := range clusters {
		name := clustermesh.ClusterName(fmt.Sprintf("c%03d", i))
		pins[name] = authority.Pin{
			Cluster: name, Roots: []authority.PublicKey{{1, byte(i)}}, Namespaces: []string{"*"},
			Pods:  []netip.Prefix{netip.PrefixFrom(netip.AddrFrom4([4]byte{10, byte(i)}), 16)},
			Nodes: []netip.Prefix{netip.MustParsePrefix("172.16.0.0/12")},
		}
	}
	c = signing(c, pins)
	c.Authority.Verify = func(pins authority.Pins, o clustermesh.Origin, _, _ []byte, _ trust.Signed) (trust.Signed, error) {
		s := authority.Statement{Root: pins[o.Cluster].Roots[0]}
		if n := l.records.Get(o).Content.Node; n != nil {
			s.Cluster, s.Node, s.Addresses, s.Prefixes = o.Cluster, o.Node, n.Addresses, n.Prefixes
			s.Key = authority.PublicKey{2, byte(n.Prefixes[0].Addr().As4()[1]), n.Prefixes[0].Addr().As4()[2]}
			s.Serial, s.NotBefore, s.NotAfter = 1, at.Unix(), at.Add(authority.Validity).Unix()
		}
		return trust.Signed{Statement: s, Bytes: []byte("signed")}, nil
	}
	return c
}

// numbered is the content of a node's record in a version.
func numbered(o clustermesh.Origin, c, n, version int) clustermesh.Content {
	content := clustermesh.Content{Node: &clustermesh.Node{
		Name: o.Node, Speaks: clustermesh.SpeaksRelays, Addresses: []netip.Addr{netip.AddrFrom4([4]byte{172, 16 + byte(c/100), byte(c), byte(n)})}, GossipPort: 7946,
		Prefixes: []netip.Prefix{netip.PrefixFrom(netip.AddrFrom4([4]byte{10, byte(c), byte(n), 0}), 24)},
	}}
	for e := range 3 {
		content.Endpoints = append(content.Endpoints, clustermesh.Endpoint{
			Service: clustermesh.ServiceName{Namespace: "default", Name: fmt.Sprint("s", e)},
			Addr:    netip.AddrFrom4([4]byte{10, byte(c), byte(n), byte(e + 2)}), Pod: fmt.Sprint("v", version), Node: o.Node, Ready: true,
		})
	}
	return content
}

func (l *large) entry(tb testing.TB, o clustermesh.Origin, c clustermesh.Content, version uint64) replica.Entry {
	tb.Helper()
	epoch := uint64(at.Add(-time.Hour).UnixNano())
	if o.Node == "" {
		epoch /= uint64(time.Millisecond)
	}
	l.records.Set(o, clustermesh.Record{Origin: o, Stamp: clustermesh.Stamp{Epoch: epoch, Version: version}, Content: c})
	e, err := replica.NewEntry(l.records.Get(o))
	if err != nil {
		tb.Fatal(err)
	}
	return e.Sealed([]byte("sealed"))
}

func (l *large) where(o clustermesh.Origin) netip.AddrPort {
	return netip.AddrPortFrom(l.records.Get(o).Content.Node.Addresses[0], 7946)
}

// hear opens a stream of a peer, with a first frame.
func (l *large) hear(tb testing.TB, i int) *Session {
	tb.Helper()
	_, generation := l.Pins()
	s, err := l.Opened(Peer{Peer: l.peers[i]}, Shown{Stated: true, Generation: generation}, l.where(l.others[i]).Addr().String(), l.now)
	if err != nil {
		tb.Fatal(err)
	}
	s.Receive(nil, l.now)
	return s
}

func (l *large) publishOwn() { l.Publish(numbered(l.cfg.Self, 0, 0, 0), l.now) }

// pass lets time pass while all streams carry heartbeats.
func (l *large) pass(d time.Duration) {
	l.now = l.now.Add(d)
	for _, p := range l.streams {
		l.contacts.Frame(p, l.now)
	}
	l.beat(nil)
	l.Take()
}

// beat is what the daemon's loop does each time.
func (l *large) beat(events []MemberEvent) {
	l.Beat(events, nil, l.now)
	l.Unmet(l.now)
	l.Probes(l.now)
}

// BenchmarkLarge is what events cost a node of 10,000, under the lock of package gossip.
func BenchmarkLarge(b *testing.B) {
	b.Run("open", func(b *testing.B) { newLarge(b, 100, 100, false).bench(b) })
	b.Run("pinned", func(b *testing.B) { newLarge(b, 100, 100, true).bench(b) })
}

func (l *large) bench(b *testing.B) {
	changed := len(l.others) - 1
	session := l.hear(b, changed)
	version := uint64(1)
	// snapshots are pushes of a record, each with a newer version of it than the last.
	snapshots := func(n int) (out []replica.Message) {
		for range n {
			version++
			e := l.entry(b, l.others[changed], numbered(l.others[changed], 99, 99, int(version)), version)
			out = append(out, &replica.Snapshot{Entries: []replica.Entry{e}})
		}
		return out
	}
	stepped := func(b *testing.B, step func()) {
		for b.Loop() {
			step()
			l.Take()
		}
	}
	b.Run("change with State", func(b *testing.B) {
		var news []replica.Message
		for b.Loop() {
			if len(news) == 0 {
				b.StopTimer()
				l.replica.Tick(l.cfg.Random) // so that the origin's pace is not too fast
				news = snapshots(32)
				b.StartTimer()
			}
			session.Receive(news[0], l.now)
			news = news[1:]
			if r := l.State().Records.Get(l.others[changed]); r.Stamp.Version != version-uint64(len(news)) {
				b.Fatalf("version %d is in force", r.Stamp.Version)
			}
			l.Take()
		}
	})
	b.Run("member that leaves and joins, with State", func(b *testing.B) {
		p := l.peers[17]
		alive := true
		stepped(b, func() {
			alive = !alive
			l.applyMembers([]MemberEvent{{Member: p, Addr: l.where(p.Origin), Alive: alive}})
			l.State()
		})
		if !alive {
			l.applyMembers([]MemberEvent{{Member: p, Addr: l.where(p.Origin), Alive: true}})
		}
		l.hear(b, 17)
	})
	b.Run("beat", func(b *testing.B) {
		l.nextTick = l.now.Add(time.Hour)
		l.beat(nil) // admits all records again if the events before call for that
		l.tick()
		stepped(b, func() { l.beat(nil) })
	})
	b.Run("tick", func(b *testing.B) { stepped(b, l.tick) })
	b.Run("frame", func(b *testing.B) {
		stepped(b, func() { session.Receive(nil, l.now) })
	})
	b.Run("all records admitted again", func(b *testing.B) { stepped(b, func() { l.readmit(nil) }) })
	b.Run("Trust", func(b *testing.B) { stepped(b, func() { l.Trust() }) })
	b.Run("Targets", func(b *testing.B) { stepped(b, func() { l.Targets(nil, l.now) }) })
	b.Run("Wanted", func(b *testing.B) { stepped(b, func() { l.Wanted(l.now) }) })
	b.Run("Heard and RTTs", func(b *testing.B) { stepped(b, func() { l.Heard(); l.RTTs() }) })
}
