package sim

import (
	"fmt"
	"math/rand/v2"
	"net/netip"
	"time"

	"strait.io/strait/clustermesh"
	"strait.io/strait/clustermesh/authority"
	"strait.io/strait/clustermesh/gossip/member"
	"strait.io/strait/clustermesh/gossip/node"
	"strait.io/strait/clustermesh/trust"
)

const (
	// beat is how often a node looks at what is due, poked how soon it does so when something may be, and
	// savePause how long a change waits to be saved, as in package gossip.
	beat      = 200 * time.Millisecond
	poked     = 5 * time.Millisecond
	savePause = time.Second
)

// Machine is a machine, and the daemon on it.
type Machine struct {
	// Self is the machine's node.
	Self clustermesh.Origin
	// Published is how often the machine has published its record.
	Published int
	// Withholds is true if the machine keeps its streams, and sends nothing on them but heartbeats and what it is.
	Withholds bool
	// Received and Sent are the bytes on the wire of the messages that it received, and sent.
	Received, Sent int

	net             *Network
	cluster, number int
	addr            netip.AddrPort
	key             *authority.PrivateKey
	public          authority.PublicKey // of key; to derive it takes time
	skew            time.Duration       // of its clock
	ahead           time.Duration       // of its clock besides, only while the daemon starts
	lead            func() (is bool, since uint64)
	leads           func() clustermesh.Content // what the machine publishes of its cluster as the leader
	node            *node.Node                 // nil while there is no daemon
	off             bool                       // the machine itself is off
	left            bool                       // for good
	life            int                        // counts the starts and ends of the daemon
	saved, backup   node.Saved                 // what is on disk, and an older state of it
	saving, beating bool
	// busy is when the daemon has handled what came, and free when the link has sent what left.
	busy, free time.Duration
	// bits are how many it sends a second, and slow is how many times as long as usual it takes for
	// a message.
	bits    float64
	slow    time.Duration
	streams map[clustermesh.Origin]*stream
	// out are connections to others, and in those of others, in the order in which they were
	// opened. Some have ended.
	out, in []*conn
	pool    pool
	seeds   []*Machine
	proven  map[clustermesh.Origin]proof
}

func newMachine(w *Network, c, n int) *Machine {
	m := &Machine{
		Self: clustermesh.Origin{Cluster: clusterName(c), Node: nodeName(n)},
		net:  w, cluster: c, number: n, off: true, bits: bandwidth, slow: 1,
	}
	i := c*w.cfg.Nodes + n
	m.key = key(fmt.Sprintf("%05d %05d node", c, n))
	if w.cfg.Pinned {
		m.public = m.key.Public()
	}
	m.leads = m.clusterContent
	m.addr = netip.AddrPortFrom(netip.AddrFrom4([4]byte{172, 16 + byte(i>>16), byte(i >> 8), byte(i)}), gossipPort)
	m.setClock()
	return m
}

// Start starts the machine's daemon. Seeds are the machines that it looks for first.
func (m *Machine) Start(seeds ...*Machine) {
	if m.node != nil {
		return
	}
	m.off = false
	m.life++
	m.saving, m.beating, m.busy = false, false, m.net.now
	m.streams, m.out, m.in, m.pool = map[clustermesh.Origin]*stream{}, nil, nil, newPool()
	m.proven = map[clustermesh.Origin]proof{}
	cfg := node.Config{
		Self: m.Self, Bind: m.addr, Advertise: m.addr, Topology: m.net.cfg.Topology,
		Owners: member.NewClusters(m.Self.Cluster, "", nil, m.clock()), Room: member.NewRoom(authority.DefaultQuota.Nodes),
		Lead:   m.lead,
		Random: rand.New(rand.NewPCG(m.net.rng.Uint64(), m.net.rng.Uint64())),
	}
	m.seeds = seeds
	cfg.Seeds = m.seedAddrs()
	if m.net.cfg.Pinned {
		cfg.Proves = true
		cfg.Authority = &trust.Config{Node: *m.key, Pins: m.net.pins, Verify: m.net.verifySeal}
		if m.number < m.net.cfg.Rooted {
			cfg.Authority.Root = root(m.cluster)
		}
		cfg.Owners.SetPinned(true)
	}
	m.node = node.New(cfg, m.saved, m.clock().Add(m.ahead))
	m.do(func(n *node.Node, now time.Time) { n.SetRunning(true, now) })
	m.Publish()
	m.beats()
	m.gossips()
	m.after(m.net.Draw(heartbeat), m.hearts)
	m.search()
	if m.net.cfg.Pinned {
		m.after(m.pause(node.FirstRequest), func() { m.keepStated(node.FirstRequest) })
	}
}

// seedAddrs are the addresses of the machine's seeds that have not left.
func (m *Machine) seedAddrs() (out []string) {
	for _, s := range m.seeds {
		if !s.left {
			out = append(out, s.addr.String())
		}
	}
	return out
}

// Stop ends the daemon. The machine stays, and answers that nothing listens.
func (m *Machine) Stop() {
	if m.node == nil {
		return
	}
	m.life++
	m.node = nil
	for _, c := range m.conns() {
		c.end(m)
	}
}

// TurnOff ends the machine: it answers nothing. What was saved is there when it is started again.
func (m *Machine) TurnOff() {
	m.off = true
	m.Stop()
}

// Forget loses what the daemon has saved, and SetBack puts an older state of it in its place.
func (m *Machine) Forget()  { m.saved = node.Saved{} }
func (m *Machine) SetBack() { m.saved = m.backup }

// Runs reports whether the daemon runs.
func (m *Machine) Runs() bool { return m.node != nil }

// Node returns the daemon's part in gossip; nil while it does not run.
func (m *Machine) Node() *node.Node { return m.node }

// Publish publishes another version of the node's record.
func (m *Machine) Publish() {
	m.Published++
	content := m.content(m.Published)
	m.doNews(func(n *node.Node, now time.Time) { n.Publish(content, now) })
}

// clock is what the machine's clock shows.
func (m *Machine) clock() time.Time { return start.Add(m.net.now + m.skew) }

// pause returns d, randomly varied by ±50 %.
func (m *Machine) pause(d time.Duration) time.Duration { return d/2 + m.net.Draw(d) }

// after does something after a time, unless this life of the daemon has ended by then.
func (m *Machine) after(d time.Duration, do func()) {
	m.net.queue.add(event{at: m.net.now + d, do: do, of: m, life: m.life})
}

// doNews is do for a message or a publication.
func (m *Machine) doNews(event func(n *node.Node, now time.Time)) {
	m.net.news = true
	m.do(event)
	m.net.news = false
}

// do has the node handle an event, and carries out what it decides.
func (m *Machine) do(event func(n *node.Node, now time.Time)) {
	var a node.Actions
	if m.net.cfg.Measure == nil {
		event(m.node, m.clock())
		a = m.node.Take()
	} else {
		m.net.cfg.Measure(m.net.news, func() {
			event(m.node, m.clock())
			a = m.node.Take()
		})
	}
	if len(a.Neighbours) > 0 {
		m.follow(a.Neighbours)
	}
	m.send(a.Send)
	if a.Distances != nil {
		m.saved.Distances = a.Distances
	}
	if a.Statement != nil {
		m.saved.Statement = a.Statement
	}
	if len(a.Dirty) > 0 {
		m.net.note(m)
		if !m.saving && !m.net.cfg.Diskless {
			m.saving = true
			m.after(savePause, m.save)
		}
	}
	if a.Changed && m.node.Leader() {
		m.publishCluster()
	}
	if a.Beat {
		m.poke()
	}
	if a.Pulse > 0 {
		m.after(a.Pulse, func() { m.do((*node.Node).Pulse) })
	}
}

// poke has the next beat come at once: after what else comes at the same time, as in a loop that is busy.
func (m *Machine) poke() {
	if !m.beating {
		m.beating = true
		m.after(poked, m.beat)
	}
}

// publishCluster publishes what the machine has of its cluster, if it leads that.
func (m *Machine) publishCluster() {
	m.do(func(n *node.Node, now time.Time) {
		if n.Leader() {
			n.PublishCluster(m.leads(), now)
		}
	})
}

func (m *Machine) save() {
	m.saving = false
	m.saved.Records = m.node.Entries()
	if m.net.rng.IntN(4) == 0 {
		m.backup = m.saved
	}
}

// beats has the node look at what is due, again and again.
func (m *Machine) beats() {
	m.beat()
	m.after(beat, m.beats)
}

func (m *Machine) beat() {
	m.beating = false
	events := m.pool.events
	m.pool.events = nil
	m.do(func(n *node.Node, now time.Time) { n.Beat(events, nil, now) })
	m.checkMembers(events)
	m.askUnmet()
	m.probe()
}
