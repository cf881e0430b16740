package health

import (
	"net/netip"

	"strait.io/strait/clustermesh"
	"strait.io/strait/daemon/plan"
	"strait.io/strait/datapath/tunnelhealth"
	"strait.io/strait/internal/key"
)

// Target is a peer to probe.
type Target struct {
	Origin clustermesh.Origin
	Key    key.Public
	Peer   tunnelhealth.Peer
}

// Targets returns whom to probe, by the address inside the tunnel: the peers of the node's own address
// family, and where several have an address, the one with the longest prefix, to which packets go. Size
// returns how large a packet to a prefix can be.
func Targets(r plan.Result, s clustermesh.State, size func(netip.Prefix) int) map[netip.Addr]Target {
	w, named := r.Desired, make(map[key.Public]clustermesh.Origin, len(r.Mesh.Ends))
	for i := range r.Mesh.Ends {
		if r.Mesh.Ends[i].Why == "" {
			named[r.Mesh.Ends[i].Key] = r.Mesh.Ends[i].Origin
		}
	}
	targets, bits := make(map[netip.Addr]Target, len(w.Peers)), map[netip.Addr]int{}
	for _, peer := range w.Peers {
		inside := peer.Inside.Addr()
		at, own := longest(peer.AllowedIPs, inside)
		if peer.Guest || !own || inside.Is4() != w.Sources.Node.Is4() || at.Bits() <= bits[inside] {
			continue
		}
		o := named[peer.Key]
		bits[inside] = at.Bits()
		targets[inside] = Target{Origin: o, Key: peer.Key, Peer: tunnelhealth.Peer{
			Traffic: len(s.Records.Get(o).Content.Endpoints) > 0, Gone: !Hears(s.Contacts.Get(o)), Size: size(at),
		}}
	}
	return targets
}

// longest returns the longest of the prefixes that contains an address.
func longest(prefixes []netip.Prefix, a netip.Addr) (out netip.Prefix, found bool) {
	for _, q := range prefixes {
		if q.Contains(a) && (!found || q.Bits() > out.Bits()) {
			out, found = q, true
		}
	}
	return out, found
}
