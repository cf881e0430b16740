package history

import (
	"fmt"
	"net/netip"
	"slices"
	"time"

	"strait.io/strait/clustermesh"
	"strait.io/strait/daemon/plan"
	"strait.io/strait/internal/key"
	"strait.io/strait/internal/l4"
)

var (
	cart  = clustermesh.ServiceName{Namespace: "shop", Name: "cart"}
	http  = clustermesh.ServicePort{Name: "http", Proto: l4.TCP, Port: 80}
	noon  = time.Date(2026, 5, 1, 12, 0, 0, 0, time.UTC)
	self  = plan.Self{Cluster: "a", Node: "n1"}
	setup = plan.Config{CIDRs: []netip.Prefix{netip.MustParsePrefix("241.0.0.0/8")}, Mesh: true, Barred: clustermesh.Barred{"dev-*"},
		Locality: plan.Locality{Factor: 1.4, Ramp: 10 * time.Second, Costs: map[clustermesh.ClusterName]map[clustermesh.ClusterName]uint32{"c": {"a": 3}}}}
)

func origin(cluster, node string) clustermesh.Origin {
	return clustermesh.Origin{Cluster: clustermesh.ClusterName(cluster), Node: clustermesh.NodeName(node)}
}

// world is a daemon that plans, and a Recorder that notes its turns.
type world struct {
	in   plan.Inputs
	past plan.Past
	rec  *Recorder
	// turns are those that were planned, and frames what was written.
	turns  []*Turn
	frames [][]byte
}

// newWorld is a clusterset of clusters of nodes, with pods of shop/cart on each.
func newWorld(clusters string, nodes, pods int) *world {
	w := &world{in: plan.Inputs{Self: self, Config: setup, Now: noon}, rec: &Recorder{}}
	return w.populate(clusters, nodes, pods, func(int) clustermesh.ServiceName { return cart })
}

// populate adds the clusters; of names the service of the pods of a node.
func (w *world) populate(clusters string, nodes, pods int, of func(node int) clustermesh.ServiceName) *world {
	records, contacts := w.in.State.Records.Draft(), w.in.State.Contacts.Draft()
	for c, name := range clusters {
		o, had := origin(string(name), ""), map[clustermesh.ServiceName]bool{}
		var content clustermesh.Content
		for n := 1; n <= nodes; n++ {
			if s := of(n); !had[s] {
				had[s] = true
				content.Exports = append(content.Exports, clustermesh.Export{Service: s, Type: clustermesh.ClusterSetIP, Ports: []clustermesh.ServicePort{http}, Created: int64(c)})
				content.Allocations = append(content.Allocations, clustermesh.Allocation{Service: s, IP: netip.AddrFrom4([4]byte{241, 1, byte(n >> 8), byte(n)})})
			}
		}
		records.Set(o, clustermesh.Record{Origin: o, Content: content})
		for n := 1; n <= nodes; n++ {
			o := origin(string(name), fmt.Sprintf("n%d", n))
			r := clustermesh.Record{Origin: o, Stamp: clustermesh.Stamp{Epoch: 7, Version: 1}}
			at := func(low byte) netip.Addr {
				return netip.AddrFrom4([4]byte{10, byte(c+1)<<4 | byte(n>>8), byte(n), low})
			}
			r.Content.Node = &clustermesh.Node{
				Name: o.Node, Locality: clustermesh.Locality{Region: string(name), Zone: fmt.Sprint(string(name), n)},
				Addresses: []netip.Addr{netip.AddrFrom4([4]byte{172, 16 | byte(c), byte(n >> 8), byte(n)})},
				Prefixes:  []netip.Prefix{netip.PrefixFrom(at(0), 24)}, Inside: at(1), WireGuardPort: 51820, PublicKey: key.Public{byte(c + 1), byte(n), byte(n >> 8)},
			}
			for p := range pods {
				r.Content.Endpoints = append(r.Content.Endpoints, clustermesh.Endpoint{
					Service: of(n), Addr: at(byte(10 + p)), Node: o.Node, Pod: fmt.Sprintf("cart-%s-%d-%d", string(name), n, p), Ready: true, Serving: true,
					Ports: []clustermesh.EndpointPort{{Name: "http", Proto: l4.TCP, Port: 8080}},
				})
			}
			records.Set(o, r)
			contacts.Set(o, clustermesh.Alive)
		}
	}
	w.in.State.Records, w.in.State.Contacts = records.Share(), contacts.Share()
	return w
}

// edit changes the content of a record.
func (w *world) edit(o clustermesh.Origin, change func(*clustermesh.Content)) {
	r := w.in.State.Records.Get(o)
	r.Origin = o
	r.Stamp.Version++
	r.Content.Endpoints = slices.Clone(r.Content.Endpoints)
	if r.Content.Node != nil {
		n := *r.Content.Node
		r.Content.Node = &n
	}
	change(&r.Content)
	w.in.State.Records = w.in.State.Records.With(o, r)
}

// plan plans, and passes seconds before it.
func (w *world) plan(seconds int) *Turn {
	w.in.Now = w.in.Now.Add(time.Duration(seconds) * time.Second)
	t := &Turn{Inputs: w.in}
	if w.past == (plan.Past{}) {
		t.Start = "v1"
	}
	var r plan.Result
	r, w.past = plan.Plan(w.in, w.past)
	t.Result = &r
	return t
}

// turn plans and notes.
func (w *world) turn(seconds int) (*Turn, error) {
	t := w.plan(seconds)
	frames, err := w.rec.Note(t, 0)
	if len(frames) > 0 {
		w.turns = append(w.turns, t)
	}
	w.frames = append(w.frames, frames...)
	return t, err
}
