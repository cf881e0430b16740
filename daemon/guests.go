package daemon

import (
	"errors"
	"io/fs"
	"strings"

	"strait.io/strait/clustermesh"
	"strait.io/strait/clustermesh/authority"
	"strait.io/strait/daemon/api"
	"strait.io/strait/daemon/plan"
	"strait.io/strait/internal/problem"
)

// readGuests reads the machines outside every cluster again if their file changed. A file that is gone
// has none, so that its removal takes effect. A file that is there and cannot be used leaves the last
// ones in force: one typing error must not cut off every machine.
func (d *Daemon) readGuests() []clustermesh.Problem {
	text, err := d.peers.text()
	if errors.Is(err, fs.ErrNotExist) {
		d.guests, d.listed = nil, ""
		return nil
	}
	if err == nil && text != d.listed {
		var read []authority.Guest
		if read, err = authority.ParseGuests([]byte(text)); err == nil {
			d.guests, d.listed = guests(read), text
			d.log.Info("the peers outside the clusters changed", "peers", len(read))
		}
	}
	if err == nil {
		return nil
	}
	return []clustermesh.Problem{{
		Code: problem.PeersFile, Object: "peers", Field: "mesh.peersFile", File: d.config.Mesh.PeersFile,
		Message: "cannot be used, so the last peers stay in force: " + strings.ReplaceAll(err.Error(), "\n", ", "),
		Try:     "correct the file; strait peer add and strait peer remove write it",
	}}
}

func guests(read []authority.Guest) (out []plan.Guest) {
	for _, g := range read {
		out = append(out, plan.Guest{Name: g.Name, Key: g.PublicKey, Range: g.Range, Nodes: g.Nodes, To: g.To, Endpoint: g.Endpoint})
	}
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
	for _, a := range v.result.Guests {
		g := api.Guest{Name: a.Name, PublicKey: a.Key, Range: a.Range, To: a.To, Elsewhere: a.Elsewhere, Refused: a.Why}
		for _, n := range a.Nodes {
			g.Nodes = append(g.Nodes, string(n))
		}
		if !a.Elsewhere && a.Why == "" {
			g.Tunnel = v.tunnel(a.Key)
		}
		out = append(out, g)
	}
	return out
}
