package daemon

import (
	"context"
	"crypto/rand"
	"sync"
	"time"

	"strait.io/strait/clustermesh"
	"strait.io/strait/clustermesh/authority"
	"strait.io/strait/clustermesh/kube"
	"strait.io/strait/daemon/trustlevel"
	"strait.io/strait/internal/notify"
	"strait.io/strait/internal/problem"
)

// makerPause is how long the maker waits after it tried.
const makerPause = 5 * time.Second

// maker makes the keys and pins that the cluster lacks, while this node leads.
type maker struct {
	client    kube.Client
	namespace string
	names     MakeConfig
	poke      notify.Signal

	mu   sync.Mutex
	want trustlevel.Missing
	err  error
	// failures counts those in a row. While an upgrade changes the rights, one is nothing.
	failures int
}

// reportedFailures is how many failures in a row are a Problem.
const reportedFailures = 2

// lacks sets what is to be made.
func (m *maker) lacks(want trustlevel.Missing) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.want != want {
		m.want, m.err, m.failures = want, nil, 0
		m.poke.Poke()
	}
}

// run makes them until ctx is done. It never changes existing ones.
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
		if want == (trustlevel.Missing{}) {
			continue
		}
		err := m.make(ctx, want)
		if ctx.Err() != nil {
			return nil
		}
		m.tried(want, err)
	}
}

// tried notes the result of an attempt.
func (m *maker) tried(want trustlevel.Missing, err error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.want != want {
		return // something else is to be made by now
	}
	m.err = err
	if m.failures++; err == nil {
		m.failures = 0
	}
}

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
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.failures < reportedFailures {
		return nil
	}
	return []clustermesh.Problem{{
		Code: problem.KeysNotMade, Object: "keys of the cluster", Warning: true,
		Message: "the leader cannot make them: " + m.err.Error(),
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
