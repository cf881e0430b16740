package daemon

import (
	"bytes"
	"net/netip"
	"slices"

	"strait.io/strait/clustermesh"
	"strait.io/strait/clustermesh/authority"
	"strait.io/strait/daemon/api"
	"strait.io/strait/daemon/plan"
	"strait.io/strait/datapath"
	"strait.io/strait/datapath/wireguard"
	"strait.io/strait/internal/key"
)

// reinvite logs that the machines outside every cluster changed; each turn plans with them.
func (d *Daemon) reinvite(_ string, guests []plan.Guest) error {
	d.log.Info("the peers outside the clusters changed", "peers", len(guests))
	return nil
}

// parseGuests reads the machines outside every cluster.
func parseGuests(text string) (out []plan.Guest, err error) {
	read, err := authority.ParseGuests([]byte(text))
	for _, g := range read {
		out = append(out, plan.Guest{Name: g.Name, Key: g.PublicKey, Range: g.Range, Nodes: g.Nodes, To: g.To, Endpoint: g.Endpoint})
	}
	return out, err
}

// admit returns the peers that the device may have now. Guests whose pin has gone, or has lost an
// address, leave it at once: unlike other clusters' records, pins are known in full, so the absence of one
// is meant even before gossip is synced. And they come only while the filter is in force.
func (t *tunnels) admit(device *wireguard.Device, j job) ([]datapath.Peer, error) {
	peers := mayHave(j.Peers, t.kernel.table.InForce())
	t.withheld = len(peers) < len(j.Peers)
	if err := device.Remove(revoked(t.guests, j.Peers)); err != nil {
		return nil, err
	}
	t.guests = map[key.Public][]netip.Prefix{}
	for _, p := range peers {
		if p.Guest {
			t.guests[p.Key] = p.AllowedIPs
		}
	}
	return peers, nil
}

// mayHave returns the peers that the device may have: without the filter, no guests.
func mayHave(peers []datapath.Peer, filtered bool) []datapath.Peer {
	if filtered {
		return peers
	}
	return slices.DeleteFunc(slices.Clone(peers), func(p datapath.Peer) bool { return p.Guest })
}

// revoked returns the guests of which the device has an address that no wanted guest has, sorted. One
// that is still wanted is made again, with the addresses that it has now.
func revoked(have map[key.Public][]netip.Prefix, want []datapath.Peer) (out []key.Public) {
	for k, ips := range have {
		i := slices.IndexFunc(want, func(p datapath.Peer) bool { return p.Guest && p.Key == k })
		if i < 0 || slices.ContainsFunc(ips, func(ip netip.Prefix) bool { return !slices.Contains(want[i].AllowedIPs, ip) }) {
			out = append(out, k)
		}
	}
	slices.SortFunc(out, func(a, b key.Public) int { return bytes.Compare(a[:], b[:]) })
	return out
}

// Peers lists the machines outside every cluster that this cluster has a pin for; nil before the first
// moment.
func (d *Daemon) Peers() *api.PeerList {
	m := d.now()
	if m == nil {
		return nil
	}
	v := d.viewer(m)
	v.peers = d.kernel.tunnels()
	return api.NewPeerList(d.viewpoint(m), v.guests())
}

func (v viewer) guests() (out []api.Guest) {
	for _, a := range v.result.Mesh.Guests {
		g := api.Guest{Name: a.Name, PublicKey: a.Key, Range: a.Range, To: a.To, Elsewhere: a.Elsewhere, Refused: a.Why}
		for _, n := range a.Nodes {
			g.Nodes = append(g.Nodes, string(n))
		}
		if !a.Elsewhere && a.Why == "" {
			g.Tunnel = v.tunnel(clustermesh.Origin{}, a.Key)
		}
		out = append(out, g)
	}
	return out
}
