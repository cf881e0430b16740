package daemon

import (
	"context"
	"time"

	"strait.io/strait/clustermesh"
	"strait.io/strait/clustermesh/authority"
	"strait.io/strait/clustermesh/kube"
	"strait.io/strait/daemon/trustlevel"
	"strait.io/strait/internal/problem"
)

const (
	// publishAgain is how often the publisher writes what did not change, in case a person deleted
	// it.
	publishAgain = 5 * time.Minute
	// memberEntry is the entry of the ConfigMap. A file of authority.membersDir has the same text.
	memberEntry = "member.yaml"
)

// publisher writes what other clusters need to pin this one, while this node leads.
type publisher struct {
	*chore[string]
	client          kube.Client
	namespace, name string
}

// run writes it until ctx is done.
func (p *publisher) run(ctx context.Context) error {
	done, at := "", time.Time{} // of this term: another leader may have written since the last one
	return p.chore.run(ctx, func(ctx context.Context, want string) error {
		if want == done && time.Since(at) < publishAgain {
			return nil
		}
		err := p.client.WriteConfigMap(ctx, p.namespace, p.name, map[string]string{memberEntry: want})
		if err == nil {
			done, at = want, time.Now()
		}
		return err
	})
}

// problems reports why it cannot be written.
func (p *publisher) problems() []clustermesh.Problem {
	err := p.failing()
	if err == nil {
		return nil
	}
	return []clustermesh.Problem{problem.Object("ConfigMap", p.namespace, p.name).Problem(clustermesh.Problem{
		Code: problem.KeysNotMade, Warning: true,
		Message: "the leader cannot write there what other clusters need to pin this one: " + err.Error(),
		Try:     "apply strait's Role and policies again (strait upgrade does)",
	})}
}

// publishMember gives the publisher what other clusters need to pin this one, once it has a root
// and a pin.
func (d *Daemon) publishMember(s clustermesh.State, local clustermesh.Local) {
	root, pin := d.leading.root, d.files.pins.Get()[d.who.Cluster]
	if d.config.Authority.Publish == "" || root == nil || !local.NodesKnown || len(local.Nodes) == 0 {
		return
	}
	if since := time.Since(d.leading.published); since < openPause {
		d.againIn(openPause - since) // turns can follow each other fast, and this goes through all nodes
		return
	}
	d.leading.published = time.Now()
	if len(pin.Roots) > 1 {
		d.againIn(openPause) // until one of them counts no more
	}
	signed := map[clustermesh.Origin]authority.PublicKey{}
	for o, statement := range d.gossip.Trust().Statements {
		signed[o] = statement.Root
	}
	d.kube.publish(string(trustlevel.Own{
		Cluster: d.who.Cluster, UID: d.who.UID, Pin: pin, Root: root.Public(), Nodes: local.Nodes, Port: d.who.Advertise.Port(), State: s, Signed: signed,
	}.Member().Encode()))
}
