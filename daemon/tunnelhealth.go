package daemon

import (
	"strait.io/strait/clustermesh"
	"strait.io/strait/daemon/api"
	"strait.io/strait/daemon/health"
	"strait.io/strait/daemon/plan"
	"strait.io/strait/datapath/tunnelhealth"
)

// health returns what the tunnels carry, and an error if they cannot be probed.
func (k *kernel) health() (health.Tunnels, error) {
	if k.prober == nil {
		return nil, nil
	}
	return k.prober.verdicts()
}

// aim has the tunnels of a plan probed.
func (k *kernel) aim(r plan.Result, s clustermesh.State) {
	if k.prober != nil {
		k.prober.aim(r, s, k.mesh.sizes, k.mesh.made)
	}
}

// addTunnel counts a tunnel of a cluster.
func addTunnel(t *api.Tunnels, v tunnelhealth.Verdict) *api.Tunnels {
	if t == nil {
		t = &api.Tunnels{States: map[string]int{}}
	}
	t.States[v.State.String()]++
	t.RTT, t.Loss = max(t.RTT, milliseconds(v.RTT)), max(t.Loss, v.Loss)
	return t
}
