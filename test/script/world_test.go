package script

import (
	"fmt"
	"math/rand/v2"
	"net/netip"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"strait.io/strait/clustermesh"
	"strait.io/strait/clustermesh/manifest"
	"strait.io/strait/clustermesh/replica"
	"strait.io/strait/daemon/plan"
	"strait.io/strait/datapath"
	"strait.io/strait/internal/key"
)

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
	// inside runs what makes sockets, where these reach nobody else.
	inside func(func() error) error
	// alone are load balancers without a node, by name.
	alone map[string]balancer
	out   strings.Builder // of the present command
}

type node struct {
	origin   clustermesh.Origin
	replica  *replica.Replica
	silent   []clustermesh.Silence
	contacts map[clustermesh.Origin]clustermesh.Contact
	cut      bool // neither sends nor receives
	result   plan.Result
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
		local := manifest.Read(filepath.Join(w.dir, name))
		local.NodesKnown = w.known[c]
		w.local[c] = local
		for _, n := range local.Nodes {
			o := clustermesh.Origin{Cluster: c, Node: n.Name}
			if w.nodes[o] == nil {
				w.nodes[o] = &node{origin: o, contacts: map[clustermesh.Origin]clustermesh.Contact{},
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

// sync publishes, delivers and plans until nothing changes: what the daemons do all the time.
func (w *world) sync() error {
	for range 10 {
		before := w.stamps()
		for _, o := range w.origins() {
			w.publish(w.nodes[o])
		}
		for _, o := range w.origins() {
			w.plan(w.nodes[o])
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

// stamps fingerprints what everybody holds.
func (w *world) stamps() string {
	s := ""
	for _, o := range w.origins() {
		for _, e := range w.nodes[o].replica.Entries() {
			s += fmt.Sprint(o, e.Record.Origin, e.Record.Stamp, ";")
		}
	}
	return s
}

func (w *world) publish(n *node) {
	local := w.local[n.origin.Cluster]
	c, found := local.NodeContent(n.origin.Node)
	if !found {
		return
	}
	i := slices.Index(w.origins(), n.origin)
	c.Node.PublicKey, c.Node.WireGuardPort, c.Node.GossipPort = key.Public{byte(i + 1)}, 51820, 7946
	if len(c.Node.Prefixes) > 0 {
		c.Node.Inside = c.Node.Prefixes[0].Addr().Next()
	}
	c.Silent = n.silent
	w.deliver(n, n.replica.SetPeers(w.peers(n)))
	w.deliver(n, n.replica.Publish(c))
	if w.leads(n) {
		allocations := n.result.Allocations
		if w.cidrs == nil {
			allocations = local.Allocations
		}
		w.deliver(n, n.replica.PublishCluster(local.ClusterContent(allocations), 1))
	}
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
	contacts := map[clustermesh.Origin]clustermesh.Contact{}
	for o := range w.nodes {
		contacts[o] = clustermesh.Alive
	}
	for o, c := range n.contacts {
		contacts[o] = c
	}
	return clustermesh.State{Records: n.replica.Records(), Contacts: contacts}
}

func (w *world) plan(n *node) {
	n.result = plan.Plan(w.state(n), plan.Self{Cluster: n.origin.Cluster, Node: n.origin.Node},
		plan.Config{CIDRs: w.cidrs, Mesh: true})
}

// apply loads every plan that a script has looked at into its load balancer.
func (w *world) apply() error {
	for _, o := range w.origins() {
		if n := w.nodes[o]; n.lb != nil {
			n.err = n.lb.Reconcile(n.result.Desired.Frontends, true)
		}
	}
	return nil
}

// frontends returns what the node's load balancer holds.
func (w *world) frontends(n *node) ([]datapath.Frontend, error) {
	if n.lb == nil {
		n.lb = w.open(w.size)
		n.err = n.lb.Reconcile(n.result.Desired.Frontends, true)
	}
	if n.err != nil {
		return nil, n.err
	}
	return n.lb.Frontends()
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
