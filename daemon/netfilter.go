package daemon

import (
	"context"
	"slices"
	"time"

	"strait.io/strait/datapath"
	"strait.io/strait/datapath/netfilter"
	"strait.io/strait/internal/problem"
)

// netfilterTable is the part that keeps pods' addresses, fits TCP's segments, and drops what no peer
// should send, on the way through the tunnel.
type netfilterTable struct{ *netfilter.Table }

func (netfilterTable) name() string         { return "netfilter" }
func (netfilterTable) again() time.Duration { return 0 }

func (netfilterTable) same(a, b want) bool {
	return a.Sources.Node == b.Sources.Node && a.Sources.Port == b.Sources.Port && slices.Equal(a.Sources.Listeners, b.Sources.Listeners) &&
		slices.Equal(a.Sources.Prefixes, b.Sources.Prefixes) && slices.Equal(a.Sources.ClusterIPs, b.Sources.ClusterIPs) &&
		slices.EqualFunc(a.Sources.Guests, b.Sources.Guests, datapath.Guest.Equal)
}

func (t netfilterTable) put(_ context.Context, j job) ([]problem.Problem, error) {
	return t.Reconcile(j.Sources, false)
}

func (t netfilterTable) prune(_ context.Context, j job) ([]problem.Problem, error) {
	return t.Reconcile(j.Sources, true)
}
