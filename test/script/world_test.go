package script

import (
	"crypto/sha256"
	"fmt"
	"math/rand/v2"
	"net/netip"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"strait.io/strait/clustermesh"
	"strait.io/strait/clustermesh/manifest"
	"strait.io/strait/clustermesh/replica"
	"strait.io/strait/clustermesh/topology"
	"strait.io/strait/daemon/plan"
	"strait.io/strait/daemon/turn"
	"strait.io/strait/datapath"
	"strait.io/strait/internal/problem"
)

// noon is when the drains of scripts begin that take a while. Plans are of two and a half minutes later.
var noon = time.Date(2026, 11, 23, 12, 0, 0, 0, time.UTC)

// world is a clusterset in one process: a directory of YAML is a cluster, each of its Node objects a node
// with a replica, a plan and a load balancer of its own.
type world struct {
	dir   string
	open  func(sizes) balancer
	size  sizes
	nodes map[clustermesh.Origin]*node
	local map[clustermesh.ClusterName]clustermesh.Local
	// known are the clusters whose YAML lists all of their Nodes.
	known map[clustermesh.ClusterName]bool
	rng   *rand.Rand
	// cidrs are the ranges of ClusterSetIPs; none where derived Services give them out.
	cidrs []netip.Prefix
	// inside runs what makes sockets, where these reach no other program.
	inside func(func() error) error
	// alone are load balancers without a node, by name.
	alone map[string]balancer
	out   strings.Builder // of the present command
}

type node struct {
	origin   clustermesh.Origin
	replica  *replica.Replica
	silent   []clustermesh.Silence
	contacts clustermesh.ByOrigin[clustermesh.Contact]
	clone    *clustermesh.Origin // whose WireGuard key it has; nil for its own
	cut      bool                // neither sends nor receives
	result   plan.Result
	caution  turn.Caution
	lb       balancer
	err      error
}

func newWorld(dir string, open func(sizes) balancer) *world {
	return &world{
		dir: dir, open: open, size: sizes{1024, 4096}, alone: map[string]balancer{}, nodes: map[clustermesh.Origin]*node{}, local: map[clustermesh.ClusterName]clustermesh.Local{},
		known: map[clustermesh.ClusterName]bool{}, rng: rand.New(rand.NewPCG(1, 1)),
		cidrs: []netip.Prefix{netip.MustParsePrefix("241.0.0.0/8")},
	}
}

// read loads every cluster's directory and makes nodes for new Node objects.
func (w *world) read(clusters []string) {
	for _, name := range clusters {
		c := clustermesh.ClusterName(name)
		local := manifest.Read(filepath.Join(w.dir, name), clustermesh.ClusterName(name))
		local.NodesKnown = w.known[c]
		w.local[c] = local
		for _, n := range local.Nodes {
			o := clustermesh.Origin{Cluster: c, Node: n.Name}
			if w.nodes[o] == nil {
				w.nodes[o] = &node{origin: o, contacts: clustermesh.ByOrigin[clustermesh.Contact]{},
					replica: replica.New(replica.Config{Self: o, Epoch: 1}, nil)}
			}
		}
	}
}

func (w *world) origins() []clustermesh.Origin {
	var out []clustermesh.Origin
	for o := range w.nodes {
		out = append(out, o)
	}
	slices.SortFunc(out, clustermesh.Origin.Compare)
	return out
}

// sync has every node take turns until nothing changes: what the daemons do all the time.
func (w *world) sync() error {
	for range 10 {
		before := w.stamps()
		for _, o := range w.origins() {
			w.turn(w.nodes[o])
		}
		if after := w.stamps(); after == before {
			return w.apply()
		}
	}
	return fmt.Errorf("the clusterset does not settle: records change for ever")
}

// tick is a second of all daemons.
func (w *world) tick() {
	for _, o := range w.origins() {
		w.deliver(w.nodes[o], w.nodes[o].replica.Tick(w.rng))
	}
}

// stamps fingerprints what all nodes hold.
func (w *world) stamps() string {
	s := ""
	for _, o := range w.origins() {
		for _, e := range w.nodes[o].replica.Entries() {
			s += fmt.Sprint(o, e.Record.Origin, e.Record.Stamp, ";")
		}
	}
	return s
}

// turn is one turn of a node's daemon. What it does to the kernel is done when all have settled, by apply.
func (w *world) turn(n *node) {
	in := turn.Inputs{
		Self: plan.Self{Cluster: n.origin.Cluster, Node: n.origin.Node}, Derived: w.cidrs == nil, Leads: w.leads(n),
		Local: w.local[n.origin.Cluster], Sourced: true, Synced: true,
	}
	if c, found := turn.NodeContent(w.machine(n), in.Local); found {
		in.Record = &c
	}
	w.join(n)
	for steps := turn.Decide(in); len(steps) > 0; steps = steps[1:] {
		switch s := steps[0].(type) {
		case turn.Publish:
			s.Content.Silent = n.silent
			w.deliver(n, n.replica.Publish(s.Content))
		case turn.PublishCluster:
			w.deliver(n, n.replica.PublishCluster(s.Content, 1))
			in.PublishedCluster = true
		case turn.Look:
			in.State = w.state(n)
			n.result, _ = plan.Plan(plan.Inputs{
				State: in.State, Self: in.Self, Now: noon.Add(150 * time.Second),
				Config: plan.Config{CIDRs: w.cidrs, Mesh: true, Locality: plan.Locality{Factor: 1.4}},
			}, plan.Past{})
			in.Plan = &n.result
			steps = append(steps[:1], turn.Decide(in)...)
		case turn.Apply:
			n.caution = s.Caution
		}
	}
}

// join makes the stream to each neighbour that is new.
func (w *world) join(n *node) {
	out := n.replica.SetMembers(topology.View{Members: w.peers(n)})
	w.deliver(n, out)
	for _, o := range w.origins() {
		if out.Neighbours[o] {
			w.deliver(n, n.replica.Connected(o, true))
		}
	}
}

// machine has a key made of its name, or that of the node it is a clone of, and the first address
// of each of its prefixes.
func (w *world) machine(n *node) turn.Machine {
	of := n.origin
	if n.clone != nil {
		of = *n.clone
	}
	m := turn.Machine{ReadsFiles: true,
		Origin: n.origin, Advertise: netip.MustParseAddrPort("192.0.2.254:7946"),
		Mesh: true, Key: sha256.Sum256([]byte(of.String())), Port: 51820,
	}
	if c, found := w.local[n.origin.Cluster].NodeContent(n.origin.Node); found {
		for _, p := range c.Node.Prefixes {
			m.Addresses = append(m.Addresses, p.Addr().Next())
		}
	}
	return m
}

// leads reports whether the node has the lowest name of its cluster.
func (w *world) leads(n *node) bool {
	for o := range w.nodes {
		if o.Cluster == n.origin.Cluster && o.Node < n.origin.Node {
			return false
		}
	}
	return true
}

func (w *world) peers(n *node) (out []replica.Peer) {
	for _, o := range w.origins() {
		if o != n.origin && w.nodes[o].cut == n.cut {
			out = append(out, o)
		}
	}
	return out
}

// deliver carries messages, by way of the wire format, until all is quiet. A cut keeps nodes on either
// side of it apart.
func (w *world) deliver(from *node, out replica.Output) {
	for _, e := range out.Send {
		to := w.nodes[e.To]
		if to == nil || to.cut != from.cut {
			continue
		}
		b, err := replica.Encode(e.Message)
		if err != nil {
			panic(err)
		}
		m, err := replica.Decode(b)
		if err != nil {
			panic(err)
		}
		w.deliver(to, to.replica.Receive(from.origin, m))
	}
}

func (w *world) state(n *node) clustermesh.State {
	contacts := clustermesh.ByOrigin[clustermesh.Contact]{}
	for o := range w.nodes {
		contacts = contacts.With(o, clustermesh.Alive)
	}
	for o, c := range n.contacts.All() {
		contacts = contacts.With(o, c)
	}
	return clustermesh.State{Records: n.replica.Records(), Contacts: contacts}
}

// apply loads every plan that a script has looked at into its load balancer.
func (w *world) apply() error {
	for _, o := range w.origins() {
		if n := w.nodes[o]; n.lb != nil {
			n.load()
		}
	}
	return nil
}

// frontends returns what the node's load balancer holds.
func (w *world) frontends(n *node) ([]datapath.Frontend, error) {
	if n.lb == nil {
		n.lb = w.open(w.size)
		n.load()
	}
	if n.err != nil {
		return nil, n.err
	}
	return n.lb.Frontends()
}

// load has the load balancer hold the plan.
func (n *node) load() {
	n.err = problem.Strict(n.lb.Reconcile(n.result.Desired.Frontends, n.caution == turn.Exact))
}

// clusters returns the directories in the script's folder that hold YAML.
func (w *world) clusters() (out []string) {
	entries, _ := os.ReadDir(w.dir)
	for _, e := range entries {
		if e.IsDir() && e.Name()[0] != '.' && e.Name() != "tmp" {
			out = append(out, e.Name())
		}
	}
	return out
}
