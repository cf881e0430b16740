package plan_test

import (
	"fmt"
	"net/netip"
	"testing"

	"strait.io/strait/clustermesh"
	"strait.io/strait/daemon/plan"
	"strait.io/strait/internal/key"
	"strait.io/strait/internal/l4"
)

// wide is 10,000 nodes in 100 clusters, and 1,000 services with 30 endpoints in two of these each.
func wide() clustermesh.State {
	var records clustermesh.Draft[clustermesh.Record]
	var contacts clustermesh.Draft[clustermesh.Contact]
	own := clustermesh.Content{}
	for c := range 100 {
		cluster := clustermesh.Origin{Cluster: clustermesh.ClusterName(fmt.Sprintf("c%03d", c))}
		var exports []clustermesh.Export
		for n := range 100 {
			o := clustermesh.Origin{Cluster: cluster.Cluster, Node: clustermesh.NodeName(fmt.Sprintf("n%03d", n))}
			content := clustermesh.Content{Node: &clustermesh.Node{
				Name: o.Node, Addresses: []netip.Addr{netip.AddrFrom4([4]byte{172, 16, byte(c), byte(n + 1)})},
				Prefixes:  []netip.Prefix{netip.PrefixFrom(netip.AddrFrom4([4]byte{10, byte(c), byte(n), 0}), 24)},
				PublicKey: key.Public{1, byte(c), byte(n)}, WireGuardPort: 51820,
			}}
			for e := range 3 {
				name := clustermesh.ServiceName{Namespace: "default", Name: fmt.Sprintf("s%04d", (c/2*20+(n*3+e)%20)%1000)}
				content.Endpoints = append(content.Endpoints, clustermesh.Endpoint{
					Service: name, Addr: netip.AddrFrom4([4]byte{10, byte(c), byte(n), byte(e + 2)}), Ready: true, Serving: true,
					Ports: []clustermesh.EndpointPort{{Name: "http", Proto: l4.TCP, Port: 8080}}, Node: o.Node,
				})
			}
			records.Set(o, clustermesh.Record{Origin: o, Content: content})
			contacts.Set(o, clustermesh.Alive)
		}
		for i := range 20 {
			name := clustermesh.ServiceName{Namespace: "default", Name: fmt.Sprintf("s%04d", c/2*20+i)}
			exports = append(exports, clustermesh.Export{Service: name, Type: clustermesh.ClusterSetIP,
				Ports: []clustermesh.ServicePort{http}, Families: []clustermesh.Family{clustermesh.IPv4}})
			if c%2 == 0 {
				own.Allocations = append(own.Allocations, clustermesh.Allocation{Service: name, IP: netip.AddrFrom4([4]byte{241, 9, byte(c), byte(i + 1)})})
			}
		}
		records.Set(cluster, clustermesh.Record{Origin: cluster, Content: clustermesh.Content{Exports: exports}})
	}
	s := clustermesh.State{Records: records.Share(), Contacts: contacts.Share()}
	edit(&s, "c000", "", func(c *clustermesh.Content) { c.Allocations = own.Allocations })
	return s
}

// BenchmarkWide is a plan of a node among 10,000 after nothing, an endpoint, or a contact has changed.
func BenchmarkWide(b *testing.B) {
	s := wide()
	p := newSeries(plan.Self{Cluster: "c000", Node: "n001"}, plan.Config{CIDRs: []netip.Prefix{cidr}, Mesh: true})
	if r := p.plan(s); len(r.Imports) != 1000 || len(r.Desired.Frontends) != 1000 || len(r.Problems) > 0 {
		b.Fatalf("%d imports, problems %v", len(r.Imports), r.Problems)
	}
	far := clustermesh.Origin{Cluster: "c077", Node: "n077"}
	for name, change := range map[string]func(i int){
		"nothing": func(int) {},
		"endpoint": func(i int) {
			edit(&s, "c077", "n077", func(c *clustermesh.Content) { c.Endpoints[0].Ready = i%2 == 0 })
		},
		"contact": func(i int) {
			s.Contacts = s.Contacts.With(far, []clustermesh.Contact{clustermesh.Quiet, clustermesh.Alive}[i%2])
		},
	} {
		b.Run(name, func(b *testing.B) {
			for i := 0; b.Loop(); i++ {
				b.StopTimer()
				change(i)
				b.StartTimer()
				p.plan(s)
			}
		})
	}
}
