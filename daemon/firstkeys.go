package daemon

import (
	"context"
	"crypto/rand"

	"strait.io/strait/clustermesh"
	"strait.io/strait/clustermesh/authority"
	"strait.io/strait/clustermesh/kube"
	"strait.io/strait/daemon/trustlevel"
	"strait.io/strait/internal/problem"
)

// maker makes the keys and pins that the cluster lacks, while this node leads.
type maker struct {
	*chore[trustlevel.Missing]
	client    kube.Client
	namespace string
	names     MakeConfig
}

// run makes them until ctx is done. It never changes existing ones.
func (m *maker) run(ctx context.Context) error { return m.chore.run(ctx, m.make) }

func (m *maker) make(ctx context.Context, want trustlevel.Missing) error {
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
	return m.client.MakeConfigMap(ctx, m.namespace, m.names.TrustLevel, map[string]string{"believe": string(trustlevel.Pinned)})
}

// problems reports why they cannot be made.
func (m *maker) problems() []clustermesh.Problem {
	err := m.failing()
	if err == nil {
		return nil
	}
	return []clustermesh.Problem{{
		Code: problem.KeysNotMade, Object: "keys of the cluster", Warning: true,
		Message: "the leader cannot make them: " + err.Error(),
		Try:     "apply strait's Role and policies again (strait upgrade does), or make the keys with strait clusterset connect",
	}}
}

// makeKeys gives the maker what the cluster lacks.
func (d *Daemon) makeKeys(o trustlevel.Open, s clustermesh.State, local clustermesh.Local) {
	if !local.NodesKnown || len(local.Nodes) == 0 {
		return
	}
	_, unreadable := d.files.believe.Now()
	d.kube.make(func(root string) trustlevel.Missing {
		return o.Lacks(unreadable != nil, root, trustlevel.OwnPin(d.who.Cluster, d.who.UID, local.Nodes, s))
	})
}
