package sim

import (
	"fmt"
	"slices"

	"strait.io/strait/clustermesh"
)

// Agrees returns an error unless all machines run and hold the same: of each node what it published last, of
// each cluster the record of its one leader, and contact with all.
func (w *Network) Agrees() error {
	for _, m := range w.Machines {
		if m.node == nil {
			return fmt.Errorf("%s does not run", m.Self)
		}
		if err := m.agrees(w.Machines[0]); err != nil {
			return fmt.Errorf("%s: %w", m.Self, err)
		}
	}
	return w.led()
}

// agrees compares what a machine holds with what was published, and with what another machine holds.
func (m *Machine) agrees(with *Machine) error {
	s, other := m.node.State(), with.node.State()
	if ok, waiting := m.node.Synced(); !ok {
		return fmt.Errorf("it waits for %s", waiting)
	}
	if len(s.Records) != len(other.Records) {
		return fmt.Errorf("it has %d records, and %s has %d", len(s.Records), with.Self, len(other.Records))
	}
	for _, p := range m.net.Machines {
		r, any := s.Records[p.Self]
		want := p.content(p.Published).Endpoints[0].Pod
		switch {
		case !any:
			return fmt.Errorf("it lacks the record of %s", p.Self)
		case len(r.Content.Endpoints) == 0 || r.Content.Endpoints[0].Pod != want:
			return fmt.Errorf("it has of %s: %v, want %s", p.Self, r.Content.Endpoints, want)
		case r.Stamp != other.Records[p.Self].Stamp:
			its := other.Records[p.Self].Stamp
			return fmt.Errorf("it has version %s of %s, and %s has %s", r.Stamp, p.Self, with.Self, its)
		case s.Contacts[p.Self] != clustermesh.Alive:
			return fmt.Errorf("its contact with %s is %s", p.Self, s.Contacts[p.Self])
		case s.Dead(p.Self):
			return fmt.Errorf("it calls %s dead", p.Self)
		}
	}
	for c := range m.net.cfg.Clusters {
		o := clustermesh.Origin{Cluster: clusterName(c)}
		r, any := s.Records[o]
		if !any || len(r.Content.Nodes) != m.net.cfg.Nodes || r.Stamp != other.Records[o].Stamp {
			return fmt.Errorf("it has of %s: version %s with %d nodes; %s has %s", o, r.Stamp, len(r.Content.Nodes), with.Self, other.Records[o].Stamp)
		}
	}
	return nil
}

// led returns an error unless each cluster has one leader: the machine with the lowest name.
func (w *Network) led() error {
	for c := range w.cfg.Clusters {
		ms := w.Machines[c*w.cfg.Nodes : (c+1)*w.cfg.Nodes]
		var leaders []clustermesh.NodeName
		for _, m := range ms {
			if m.node.Leader() {
				leaders = append(leaders, m.Self.Node)
			}
		}
		if !slices.Equal(leaders, []clustermesh.NodeName{ms[0].Self.Node}) {
			return fmt.Errorf("the leaders of %s: %v", clusterName(c), leaders)
		}
	}
	return nil
}
