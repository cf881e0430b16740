package daemon

import (
	"strings"
	"testing"

	"strait.io/strait/clustermesh"
	"strait.io/strait/daemon/api"
)

// TestWithoutServer: a cluster without an API server has nothing to write and nothing to wait for, and
// knows which node asks by the annotation of its object.
func TestWithoutServer(t *testing.T) {
	var s noServer
	status := api.Status{}
	if ps := s.report(&status); len(ps) > 0 || status.Unwritten > 0 || status.Writing != nil || s.written() != nil {
		t.Errorf("it reports %v, %+v", ps, status)
	}
	followed := s.followConfigs(func() []clustermesh.ClusterConfig { t.Error("it reads configurations"); return nil })
	if _, lent, err := s.loan(); s.present() || lent || err != nil || !followed {
		t.Errorf("present %v, lent %v, %v", s.present(), lent, err)
	}
	if s.election() != nil || s.token("/token") != nil {
		t.Error("gossip would ask an API server")
	}
	r := requested()
	key := map[clustermesh.NodeName]string{r.Want.Node: r.Want.Key.Fingerprint()}
	nodes := []clustermesh.Node{{Name: r.Want.Node, Addresses: r.Want.Addresses}}
	for message, local := range map[string]clustermesh.Local{
		"":              {Nodes: nodes, NodeKeys: key},
		"no annotation": {Nodes: nodes},
		"no Node n2":    {NodeKeys: key},
	} {
		if err := s.attest(t.Context(), r, local); message == "" && err != nil || message != "" && (err == nil || !strings.Contains(err.Error(), message)) {
			t.Errorf("%v, want %q", err, message)
		}
	}
}
