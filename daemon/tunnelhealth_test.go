package daemon

import (
	"slices"
	"testing"

	"strait.io/strait/daemon/api"
	"strait.io/strait/datapath/tunnelhealth"
)

// The API has a name for each state.
func TestTunnelStates(t *testing.T) {
	if !slices.Equal(api.TunnelStates, tunnelhealth.Names()) {
		t.Errorf("the API has %q, tunnels are %q", api.TunnelStates, tunnelhealth.Names())
	}
}
