package sim

import (
	"fmt"
	"slices"

	"strait.io/strait/clustermesh"
)

// Agrees returns an error unless all machines that have not left run and hold the same: of each
// node what it published last, of each cluster the record of its one leader, nothing of what left,
// and contact with all.
func (w *Network) Agrees() error {
	if w.wrong != nil {
		return w.wrong
	}
	for _, m := range w.Machines {
		if m.left {
			continue
		}
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
	if s.Records.Len() != other.Records.Len() {
		return fmt.Errorf("it has %d records, and %s has %d", s.Records.Len(), with.Self, other.Records.Len())
	}
	claimed := s.Claimed()
	for _, p := range m.net.Machines {
		if err := agreesOn(p, s, other); err != nil {
			return err
		}
		if claimed[p.Self] && s.Dead(p.Self) {
			return fmt.Errorf("it calls %s dead", p.Self)
		}
	}
	for c := range m.net.cfg.Clusters {
		o := clustermesh.Origin{Cluster: clusterName(c)}
		r, any := s.Records.Lookup(o)
		nodes := m.net.staying(c)
		switch {
		case len(nodes) == 0 && any:
			return fmt.Errorf("it has the record of %s, which has left", o)
		case len(nodes) > 0 && (!any || len(r.Content.Nodes) != len(nodes) || r.Stamp != other.Records.Get(o).Stamp):
			return fmt.Errorf("it has of %s: version %s with %d nodes of %d; %s has %s", o, r.Stamp, len(r.Content.Nodes), len(nodes), with.Self, other.Records.Get(o).Stamp)
		}
	}
	return nil
}

// agreesOn compares what two machines hold of a third one with what that published.
func agreesOn(p *Machine, s, other clustermesh.State) error {
	r, any := s.Records.Lookup(p.Self)
	switch {
	case p.left && any:
		return fmt.Errorf("it has the record of %s, which has left", p.Self)
	case p.left:
		return nil
	case !any:
		return fmt.Errorf("it lacks the record of %s", p.Self)
	case len(r.Content.Endpoints) == 0 || r.Content.Endpoints[0].Pod != p.pod(0, p.Published):
		return fmt.Errorf("it has of %s: %v, want %s", p.Self, r.Content.Endpoints, p.pod(0, p.Published))
	case r.Stamp != other.Records.Get(p.Self).Stamp:
		return fmt.Errorf("it has version %s of %s, and another node has %s", r.Stamp, p.Self, other.Records.Get(p.Self).Stamp)
	case !s.Contacts.Get(p.Self).Heard():
		return fmt.Errorf("its contact with %s is %s", p.Self, s.Contacts.Get(p.Self))
	}
	return nil
}

// staying are the machines of a cluster that have not left.
func (w *Network) staying(cluster int) []*Machine {
	return slices.DeleteFunc(slices.Clone(w.of(cluster)), func(m *Machine) bool { return m.left })
}

// led returns an error unless each cluster has one leader: the machine with the lowest name.
func (w *Network) led() error {
	for c := range w.cfg.Clusters {
		var want, leaders []clustermesh.NodeName
		for i, m := range w.staying(c) {
			if i == 0 {
				want = append(want, m.Self.Node)
			}
			if m.node.Leader() {
				leaders = append(leaders, m.Self.Node)
			}
		}
		if !slices.Equal(leaders, want) {
			return fmt.Errorf("the leaders of %s: %v", clusterName(c), leaders)
		}
	}
	return nil
}
