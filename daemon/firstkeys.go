package daemon

import (
	"context"
	"crypto/rand"
	"fmt"
	"net/netip"
	"slices"
	"sync"
	"time"

	"strait.io/strait/clustermesh"
	"strait.io/strait/clustermesh/authority"
	"strait.io/strait/clustermesh/kube"
	"strait.io/strait/internal/notify"
	"strait.io/strait/internal/problem"
)

// missing is what a cluster lacks to believe only what is signed, and its leader makes. At most one field
// is set: each is made when what it needs has come to the nodes.
type missing struct {
	Root bool
	// Pins are the cluster's own, as text.
	Pins string
	// Pinned is that only the pins count.
	Pinned bool
}

// lacks returns what is to be made next. Unsaid is whether nothing says yet whom to believe, root the one
// that is lent to this node.
func (o open) lacks(unsaid bool, root string, own authority.Pin) missing {
	switch {
	case o.Authority.Make == nil || !unsaid:
	case !o.Pins && root == "":
		return missing{Root: true}
	case !o.Pins:
		k, err := authority.ParsePrivate(root)
		if err != nil {
			return missing{} // it is reported when there are pins
		}
		own.Roots = []authority.PublicKey{k.Public()}
		return missing{Pins: string(authority.Pins{own.Cluster: own}.Encode())}
	case root != "" && (!o.Seeds || o.Known > 1) && len(o.Strangers)+len(o.Unsigned)+len(o.Outside) == 0:
		// Nobody is cut off by it. Where only pins count already, the word is written again if it was
		// deleted: nodes that are new need it.
		return missing{Pinned: true}
	}
	return missing{}
}

// ownPin returns what a cluster pins of itself, by its Nodes and what its nodes say now. It is wide, for it
// need not keep anybody out: what other clusters pin of this one is confirmed by people. It names no ranges
// of nodes, so that those of the next subnet are believed too.
func ownPin(own clustermesh.ClusterName, uid string, nodes []clustermesh.Node, s clustermesh.State) authority.Pin {
	pin := authority.Pin{Cluster: own, UID: uid, Namespaces: []string{"*"}}
	for _, n := range nodes {
		for _, p := range n.Prefixes {
			pin.Pods = append(pin.Pods, widened(p))
		}
	}
	for o, r := range s.Records {
		if o.Cluster == own && r.Content.Node != nil {
			for _, p := range r.Content.Node.Prefixes {
				if !clustermesh.IsTunnelAddr(p.Addr()) {
					pin.Pods = append(pin.Pods, widened(p))
				}
			}
		}
	}
	pin.Pods = distinct(pin.Pods)
	return pin
}

// widened returns a prefix that has room for more: as connect proposes.
func widened(p netip.Prefix) netip.Prefix {
	bits := 16
	if p.Addr().Is6() {
		bits = 48
	}
	return netip.PrefixFrom(p.Addr(), min(bits, p.Bits())).Masked()
}

// distinct sorts prefixes, and leaves out those inside of others.
func distinct(ps []netip.Prefix) (out []netip.Prefix) {
	slices.SortFunc(ps, netip.Prefix.Compare) // a wide one comes before those inside of it
	for _, p := range ps {
		if !slices.ContainsFunc(out, func(q netip.Prefix) bool { return q.Bits() <= p.Bits() && q.Contains(p.Addr()) }) {
			out = append(out, p)
		}
	}
	return out
}

// outside returns the prefixes of own nodes that are neither in their Nodes nor in the pinned pods, each
// with its node: nobody would state them.
func outside(own clustermesh.ClusterName, pin authority.Pin, nodes []clustermesh.Node, s clustermesh.State) (out []string) {
	objects := map[clustermesh.NodeName][]netip.Prefix{}
	for _, n := range nodes {
		objects[n.Name] = n.Prefixes
	}
	for o, r := range s.Records {
		if o.Cluster != own || r.Content.Node == nil {
			continue
		}
		for _, p := range r.Content.Node.Prefixes {
			within := func(q netip.Prefix) bool { return q.Bits() <= p.Bits() && q.Contains(p.Addr()) }
			if !clustermesh.IsTunnelAddr(p.Addr()) && !slices.ContainsFunc(slices.Concat(pin.Pods, objects[o.Node]), within) {
				out = append(out, fmt.Sprintf("%s of node %s", p, o.Node))
			}
		}
	}
	slices.Sort(out)
	return out
}

// makerPause is how long the maker waits after it tried.
const makerPause = 5 * time.Second

// maker makes what the cluster lacks, while this node leads.
type maker struct {
	client    kube.Client
	namespace string
	names     MakeConfig
	poke      notify.Signal

	mu   sync.Mutex
	want missing
	err  error
}

// lacks says what is to be made.
func (m *maker) lacks(want missing) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.want != want {
		m.want, m.err = want, nil
		m.poke.Poke()
	}
}

// run makes it until ctx is done. What is there is never changed.
func (m *maker) run(ctx context.Context) error {
	for {
		select {
		case <-ctx.Done():
			return nil
		case <-m.poke:
		case <-time.After(makerPause):
		}
		m.mu.Lock()
		want := m.want
		m.mu.Unlock()
		if want == (missing{}) {
			continue
		}
		err := m.make(ctx, want)
		if ctx.Err() != nil {
			return nil
		}
		m.mu.Lock()
		if m.want == want {
			m.err = err
		}
		m.mu.Unlock()
	}
}

func (m *maker) make(ctx context.Context, want missing) error {
	switch {
	case want.Root:
		root, err := authority.Generate(rand.Reader)
		if err != nil {
			return err
		}
		return m.client.MakeSecret(ctx, m.namespace, m.names.Secret, map[string][]byte{"root.key": []byte(root.Base64() + "\n")})
	case want.Pins != "":
		return m.client.MakeConfigMap(ctx, m.namespace, m.names.Pins, map[string]string{"pins.yaml": want.Pins})
	}
	return m.client.MakeConfigMap(ctx, m.namespace, m.names.Believe, map[string]string{"believe": string(BelievePinned)})
}

// problems reports why it cannot be made.
func (m *maker) problems() []clustermesh.Problem {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.err == nil {
		return nil
	}
	return []clustermesh.Problem{{
		Code: problem.KeysNotMade, Object: "keys of the cluster", Warning: true,
		Message: "the leader cannot make them: " + m.err.Error(),
		Try:     "apply strait's Role and policies again (strait upgrade does), or make the keys with strait clusterset connect",
	}}
}

// makeKeys tells the maker what the cluster lacks.
func (d *Daemon) makeKeys(o open, s clustermesh.State, local clustermesh.Local) {
	if !local.NodesKnown || len(local.Nodes) == 0 {
		return
	}
	_, unreadable := d.files.believe.Now()
	d.kube.make(func(root string) missing {
		return o.lacks(unreadable != nil, root, ownPin(d.who.Cluster, d.who.UID, local.Nodes, s))
	})
}
