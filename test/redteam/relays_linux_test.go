package redteam

import (
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"net/netip"
	"os"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"strait.io/strait/clustermesh"
	"strait.io/strait/clustermesh/authority"
	"strait.io/strait/clustermesh/gossip"
	"strait.io/strait/clustermesh/gossip/stream"
	"strait.io/strait/clustermesh/replica"
	"strait.io/strait/daemon/api"
	"strait.io/strait/daemon/api/client"
	"strait.io/strait/internal/testutil"
)

// The relays of west, which has so many nodes that there are some: so the hash of their names has it. The
// first home of n1 is hostile: it has the key of its node and is believed, and east has a stream to it.
const (
	crowdSize              = 22
	crowdNumber            = 100 // that of its first node
	hostileRelay           = 15
	secondHome, otherRelay = 1, 0
)

func crowdNode(i int) clustermesh.Origin { return origin("west", fmt.Sprint("r", i)) }

// crowd is a clusterset with relays. The nodes of west besides n1 run in the test's process, as strait's
// own code. They share pods of default/serve.
type crowd struct {
	*world
	nodes map[int]*gossip.Gossip
	all   []clustermesh.Origin
	// made counts the changes that they made.
	made int
	// k is the hostile relay, own its record, and others are all other nodes: it has streams to all.
	k      *keyholder
	own    replica.Entry
	others []clustermesh.Origin

	mu sync.Mutex
	// bytes are what the hostile relay got from each, and reports how often each said whom it hears.
	bytes, reports map[clustermesh.Origin]int
	// echoed is true once n1 has sent the record that drained asks for.
	echoed bool
	// passes is called with what it gets. Nil passes nothing on.
	passes func(from clustermesh.Origin, message []byte)
}

// crowdAt is where the daemon of a node is.
func crowdAt(o clustermesh.Origin) netip.AddrPort {
	var i int
	switch n, _ := fmt.Sscanf(string(o.Node), "r%d", &i); {
	case n == 0:
		return numbered(o)
	case i == hostileRelay:
		return gossipOf(mallory)
	default:
		return gossipOf(crowdNumber + byte(i))
	}
}

// newCrowd starts all, and then the hostile relay, which passes nothing on. It waits until n1 has streams
// to its two homes and to no other node, and balances over a pod of the other relay.
func newCrowd(t *testing.T) *crowd {
	t.Helper()
	c := &crowd{
		world: newWorld(t, nil), nodes: map[int]*gossip.Gossip{}, bytes: map[clustermesh.Origin]int{}, reports: map[clustermesh.Origin]int{},
		all: []clustermesh.Origin{origin("west", "n1"), origin("east", "n1")}, made: 1,
	}
	pin := c.pins["west"]
	pin.Nodes = append(pin.Nodes, netip.MustParsePrefix("198.51.100.0/24"))
	c.pins["west"] = pin
	var manifests strings.Builder
	for i := range crowdSize {
		n := c.content(i).Node
		fmt.Fprintf(&manifests, "---\napiVersion: v1\nkind: Node\nmetadata: {name: %s}\nspec: {podCIDRs: [%s]}\n"+
			"status: {addresses: [{type: InternalIP, address: %s}]}\n", n.Name, n.Prefixes[0], n.Addresses[0])
	}
	for _, m := range []*member{c.west, c.east} {
		m.write("pins.yaml", string(c.pins.Encode()))
	}
	c.west.write("manifests/crowd.yaml", manifests.String())
	c.west.write("manifests/serve.yaml", serviceOnly)
	root := rootOf("west")
	for i := range crowdSize {
		c.all = append(c.all, crowdNode(i))
		if i != hostileRelay {
			c.nodes[i] = c.speaks(crowdNumber+byte(i), gossip.Config{
				Self: crowdNode(i), Authority: &gossip.Authority{Root: &root, Node: crowdKey(i), Pins: c.pins},
			}).Gossip
			c.nodes[i].Publish(c.content(i))
		}
	}
	c.nodes[otherRelay].Publish(c.content(otherRelay, crowdPod(otherRelay)))
	c.betrays()
	c.arrives(c.west, crowdPod(otherRelay), true)
	c.settles()
	return c
}

// settles waits until changes arrive soon, as they do once all daemons see the same members.
func (c *crowd) settles() {
	c.Helper()
	testutil.Eventually(c, patience, func() error {
		if worst := slices.Max(c.changes(5)); worst > time.Second {
			return fmt.Errorf("changes take up to %s", worst)
		}
		return nil
	})
}

func crowdKey(i int) authority.PrivateKey { return sha256.Sum256(fmt.Appendf(nil, "r%d", i)) }

// content is what a node of the crowd says, with pods of default/serve.
func (c *crowd) content(i int, pods ...netip.Addr) clustermesh.Content {
	o, n := crowdNode(i), crowdNumber+byte(i)
	out := clustermesh.Content{Node: &clustermesh.Node{
		Name: o.Node, Addresses: []netip.Addr{netip.AddrFrom4([4]byte{198, 51, 100, n})}, Speaks: clustermesh.SpeaksRelays,
		Prefixes: []netip.Prefix{netip.PrefixFrom(netip.AddrFrom4([4]byte{10, westNumber, n, 0}), 24)},
	}}
	for _, p := range pods {
		out.Endpoints = append(out.Endpoints, endpoint("default", string(o.Node), p))
	}
	for b := range 40 {
		e := endpoint("default", string(o.Node), netip.AddrFrom4([4]byte{10, westNumber, n, 100 + byte(b)}))
		e.Service.Name = "other"
		out.Endpoints = append(out.Endpoints, e)
	}
	return out
}

// serviceOnly shares default/serve without a pod of n1.
const serviceOnly = `apiVersion: v1
kind: Service
metadata: {name: serve}
spec: {ports: [{name: http, port: 80, targetPort: 8080}]}
---
apiVersion: multicluster.x-k8s.io/v1beta1
kind: ServiceExport
metadata: {name: serve}
`

// crowdPod is the pod of a node of the crowd that comes and goes.
func crowdPod(i int) netip.Addr {
	return netip.AddrFrom4([4]byte{10, westNumber, crowdNumber + byte(i), 7})
}

// betrays starts the hostile relay.
func (c *crowd) betrays() {
	c.Helper()
	self := crowdNode(hostileRelay)
	c.others = slices.DeleteFunc(slices.Clone(c.all), func(o clustermesh.Origin) bool { return o == self })
	key, content := crowdKey(hostileRelay), c.content(hostileRelay)
	statement, err := authority.Statement{
		Cluster: self.Cluster, Node: self.Node, Key: key.Public(), Addresses: content.Node.Addresses, Prefixes: content.Node.Prefixes, Serial: 1,
	}.Signed(time.Now()).Sign(rootOf("west"))
	c.must(err)
	mine := stream.Credentials{Key: key.Signer(), Statement: func() []byte { return statement }}
	c.k = c.keyholderAt(mine, self, "", everybody{asked: &sync.Map{}, heard: &sync.Map{}, at: crowdAt, received: c.received})
	c.own = c.sealed(c.forge(self, 0, content), key, statement)
	c.Cleanup(c.k.joins(c.others...))
	homes := []clustermesh.Origin{crowdNode(secondHome), self}
	testutil.Eventually(c, patience, func() error {
		for _, o := range c.others {
			c.k.says(o, &replica.Snapshot{Entries: []replica.Entry{c.own}})
			c.k.says(o, &replica.Want{Origins: c.all})
		}
		for _, o := range c.all {
			if _, heard := c.k.heard.Load(o); !heard && o != self {
				return fmt.Errorf("the hostile relay has not heard %s", o)
			}
		}
		of, err1 := c.west.streams()
		far, err2 := c.east.streams()
		if err := errors.Join(err1, err2); err != nil || !slices.Equal(of, homes) || !slices.Contains(far, self) {
			return fmt.Errorf("n1 has streams to %v, want %v, and east to %v: %w", of, homes, far, err)
		}
		return nil
	})
}

// received counts what the hostile relay gets, and passes it on if it is to.
func (c *crowd) received(from clustermesh.Origin, message []byte) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.bytes[from] += len(message)
	switch m, _ := replica.Decode(message); m := m.(type) {
	case *replica.Links:
		c.reports[from]++
	case *replica.Snapshot:
		for _, e := range m.Entries {
			c.echoed = c.echoed || from == c.all[0] && e.Record.Origin == echo
		}
	}
	if c.passes != nil {
		c.passes(from, slices.Clone(message))
	}
}

// echo is the record that only drained asks for.
var echo = origin("east", "")

// drained waits until n1 has taken all that the hostile relay has sent it.
func (c *crowd) drained() {
	c.Helper()
	c.mu.Lock()
	c.echoed = false
	c.mu.Unlock()
	testutil.Eventually(c, patience, func() error {
		c.k.says(c.all[0], &replica.Want{Origins: []clustermesh.Origin{echo}})
		c.mu.Lock()
		defer c.mu.Unlock()
		if !c.echoed {
			return errors.New("n1 is still busy with the flood")
		}
		return nil
	})
}

// got returns how much the hostile relay got from a node: bytes, and reports of whom it hears.
func (c *crowd) got(from clustermesh.Origin) (bytes, reports int) {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.bytes[from], c.reports[from]
}

// changes has nodes of the crowd add and remove a pod, and returns how long each change took until n1's
// kernel knew.
func (c *crowd) changes(n int) (took []time.Duration) {
	c.Helper()
	for len(took) < n {
		c.made++
		i, there := c.made/2%crowdSize, c.made%2 == 0
		if i == hostileRelay || i == otherRelay {
			continue
		}
		content := c.content(i)
		if there {
			content = c.content(i, crowdPod(i))
		}
		began := time.Now()
		c.nodes[i].Publish(content)
		c.arrives(c.west, crowdPod(i), there)
		took = append(took, time.Since(began))
	}
	return took
}

// arrives waits until the kernel of a daemon balances over an address, or does not any more.
func (c *crowd) arrives(m *member, a netip.Addr, there bool) {
	c.Helper()
	for began := time.Now(); ; time.Sleep(time.Millisecond) {
		got, err := m.backends()
		switch {
		case err == nil && slices.Contains(got, a) == there:
			return
		case time.Since(began) > patience:
			c.Fatalf("%s balances over %v (%v) after %s; want %s there: %t", m.cluster, got, err, patience, a, there)
		}
	}
}

// streams returns to which nodes a daemon has a stream.
func (m *member) streams() (out []clustermesh.Origin, err error) {
	ctx, cancel := context.WithTimeout(m.w.Context(), 2*time.Second)
	defer cancel()
	list, err := client.OnSocket(m.path("run/strait.sock")).Members(ctx)
	if err != nil {
		return nil, err
	}
	for _, of := range list.Items {
		if of.Node != "" && of.Link == api.LinkStream {
			out = append(out, origin(of.Cluster, of.Node))
		}
	}
	slices.SortFunc(out, clustermesh.Origin.Compare)
	return out, nil
}

// cpu returns how much processor time a daemon has used.
func (m *member) cpu() time.Duration {
	m.w.Helper()
	text, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", m.pid))
	m.w.must(err)
	_, rest, _ := strings.Cut(string(text), ") ")
	var user, system int64
	_, err = fmt.Sscanf(strings.Join(strings.Fields(rest)[11:13], " "), "%d %d", &user, &system)
	m.w.must(err)
	return time.Duration(user+system) * 10 * time.Millisecond
}
