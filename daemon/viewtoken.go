package daemon

import (
	"context"
	"crypto/rand"
	"time"

	"strait.io/strait/clustermesh"
	"strait.io/strait/clustermesh/kube"
	"strait.io/strait/daemon/api"
	"strait.io/strait/internal/problem"
)

// tokenMaker makes the Secret with the token of strait-view while this node leads, unless there is one.
type tokenMaker struct {
	*chore[string] // its name
	client         kube.Client
	namespace      string
}

func newTokenMaker(client kube.Client, namespace, name string) *tokenMaker {
	m := &tokenMaker{chore: newChore[string](), client: client, namespace: namespace}
	m.set(name)
	return m
}

// run makes it, and again if a person deleted it, until ctx is done. The leader may not read it, so it learns
// only from the answer that there is one.
func (m *tokenMaker) run(ctx context.Context) error {
	var at time.Time
	return m.chore.run(ctx, func(ctx context.Context, name string) error {
		if time.Since(at) < publishAgain {
			return nil
		}
		token := rand.Text() + rand.Text() // 128 bits each
		err := m.client.MakeSecret(ctx, m.namespace, name, map[string][]byte{api.ViewTokenKey: []byte(token)})
		if err == nil {
			at = time.Now()
		}
		return err
	})
}

// problems reports why it cannot be made.
func (m *tokenMaker) problems() []clustermesh.Problem {
	err := m.failing()
	if err == nil {
		return nil
	}
	return []clustermesh.Problem{problem.Object("Secret", m.namespace, m.want).Problem(clustermesh.Problem{
		Code: problem.KeysNotMade, Warning: true,
		Message: "the leader cannot make the token of strait-view: " + err.Error(),
		Try:     "apply strait's Role and policies again (strait upgrade does), or make it yourself (docs/kubernetes.md)",
	})}
}
