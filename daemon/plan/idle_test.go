package plan_test

import (
	"net/netip"
	"slices"
	"testing"

	"strait.io/strait/clustermesh"
	"strait.io/strait/daemon/plan"
	"strait.io/strait/datapath"
	"strait.io/strait/internal/l4"
)

// Endpoints of a UDP frontend that get no new connections are idle until they leave. A TCP frontend
// lists none.
func TestIdle(t *testing.T) {
	dns := clustermesh.ServicePort{Name: "dns", Proto: l4.UDP, Port: 53}
	s := clusterset()
	for o, r := range s.Records.All() {
		for i := range r.Content.Exports {
			r.Content.Exports[i].Ports = []clustermesh.ServicePort{http, dns}
		}
		for i := range r.Content.Endpoints {
			r.Content.Endpoints[i].Ports = append(r.Content.Endpoints[i].Ports, clustermesh.EndpointPort{Name: "dns", Proto: l4.UDP, Port: 53})
		}
		s.Records = s.Records.With(o, r)
	}
	edit(&s, "a", "n2", func(c *clustermesh.Content) { c.Endpoints[0].Ready = false })
	edit(&s, "b", "n1", func(c *clustermesh.Content) { c.Endpoints[0].Ready, c.Endpoints[0].Terminating = false, true })
	edit(&s, "b", "n2", func(c *clustermesh.Content) { c.Endpoints = nil })
	s.Contacts = s.Contacts.With(clustermesh.Origin{Cluster: "c", Node: "n1"}, clustermesh.Silent)
	fs := once(s, plan.Self{Cluster: "a", Node: "n1"}, plan.Config{CIDRs: []netip.Prefix{cidr}}).Desired.Frontends
	var udp, tcp []string
	for _, f := range fs {
		for _, e := range f.Idle {
			text := e.Addr.String()
			if e.Unready {
				text += " not ready"
			}
			if f.Addr.Proto == l4.UDP {
				udp = append(udp, text)
			} else {
				tcp = append(tcp, text)
			}
		}
	}
	if want := []string{"10.1.2.10:53 not ready", "10.3.2.10:53"}; !slices.Equal(udp, want) || len(tcp) > 0 {
		t.Errorf("idle: UDP %q, TCP %q; want %q and none, in %+v", udp, tcp, want, fs)
	}
	if i := slices.IndexFunc(fs, func(f datapath.Frontend) bool { return f.Addr.Proto == l4.UDP }); i < 0 || len(fs[i].Backends) != 1 {
		t.Errorf("the pod of the node itself is not the backend: %+v", fs)
	}
}
