package node

import "strait.io/strait/daemon/api"

// meshData is the picture for programs.
type meshData struct {
	api.Meta
	SeenFrom string     `json:"seenFrom"` // "cluster/name"
	Nodes    []meshNode `json:"nodes"`
	Links    []meshLink `json:"links"`
}

type meshNode struct {
	Cluster    string   `json:"cluster"`
	Name       string   `json:"name"`
	AllowedIPs []string `json:"allowedIPs,omitempty"`
	// Unreachable and NoTunnel are reasons.
	Unreachable string `json:"unreachable,omitempty"`
	NoTunnel    string `json:"noTunnel,omitempty"`
}

// meshLink is the tunnel between two nodes, "cluster/name".
type meshLink struct {
	A string `json:"a"`
	B string `json:"b"`
	// Down is why it carries nothing, as far as the node that answers can know.
	Down string `json:"down,omitempty"`
}

func (m mesh) data() meshData {
	d := meshData{Meta: api.Meta{APIVersion: api.APIVersion, Kind: "Mesh"}, SeenFrom: m.from, Nodes: []meshNode{}, Links: []meshLink{}}
	for _, c := range m.clusters {
		for _, n := range c.nodes {
			each := meshNode{Cluster: n.Cluster, Name: n.Name, Unreachable: unreachable(&n), NoTunnel: noTunnel(&n)}
			if n.Peer != nil {
				for _, p := range n.Peer.AllowedIPs {
					each.AllowedIPs = append(each.AllowedIPs, p.String())
				}
			}
			d.Nodes = append(d.Nodes, each)
		}
	}
	for _, l := range m.links {
		d.Links = append(d.Links, meshLink{A: fullName(l.a), B: fullName(l.b), Down: l.why})
	}
	return d
}
