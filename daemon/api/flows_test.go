package api

import (
	"net/netip"
	"testing"

	"strait.io/strait/internal/l4"
)

func number(n uint64) *uint64 { return &n }

// aFlow is one client's sockets with one cluster's backend of a service.
func aFlow(client, service, cluster string, n FlowCounts) Flow {
	return Flow{Client: FlowClient{Cluster: "us", Node: "n1", Name: client}, Service: service, Backend: FlowBackend{Cluster: cluster}, FlowCounts: n}
}

// TestAddCounts: what is unknown does not count as zero, and adding changes no summand.
func TestAddCounts(t *testing.T) {
	var sum FlowCounts
	one := FlowCounts{Open: 1, Sent: number(3)}
	for _, c := range []FlowCounts{{Open: 2}, one, {Open: 1, Sent: number(4), Received: number(0)}} {
		sum.Add(c)
	}
	if sum.Open != 4 || *sum.Sent != 7 || *sum.Received != 0 || *one.Sent != 3 {
		t.Errorf("got %d, %d, %d", sum.Open, *sum.Sent, *sum.Received)
	}
	var none FlowCounts
	none.Add(FlowCounts{Open: 1})
	if none.Sent != nil || none.Received != nil {
		t.Errorf("of sockets that count no bytes: %+v", none)
	}
}

// TestFlowList: those with the most sockets come first, one service can be asked for, and what does
// not fit is counted.
func TestFlowList(t *testing.T) {
	all := []Flow{aFlow("b", "shop/cart", "us", FlowCounts{Open: 1}), aFlow("a", "shop/cart", "us", FlowCounts{Open: 1}), aFlow("c", "shop/pay", "us", FlowCounts{Open: 3})}
	l := NewFlowList(Viewpoint{}, all, "", "")
	if len(l.Items) != 3 || l.Items[0].Client.Name != "c" || l.Items[1].Client.Name != "a" || l.LeftOut != 0 {
		t.Errorf("all: %+v", l)
	}
	if l := NewFlowList(Viewpoint{}, all, "shop/cart", "x"); len(l.Items) != 2 || l.Partial != "x" || l.Kind != KindFlows {
		t.Errorf("of one service: %+v", l)
	}
	if l := NewFlowList(Viewpoint{}, all, "shop/none", ""); l.Items == nil || len(l.Items) != 0 {
		t.Errorf("of a service without any: %+v", l)
	}
	if l := NewFlowList(Viewpoint{}, make([]Flow, maxFlows+7), "", ""); len(l.Items) != maxFlows || l.LeftOut != 7 {
		t.Errorf("too many: %d, %d left out", len(l.Items), l.LeftOut)
	}
}

// TestTrafficList: the counters of all ports and the sockets are summed up by service and cluster.
func TestTrafficList(t *testing.T) {
	gone := aFlow("a", "", "", FlowCounts{Open: 1})
	gone.Frontend = l4.New(netip.MustParseAddr("241.0.0.9"), 80, l4.TCP)
	flows := []Flow{aFlow("a", "shop/cart", "eu", FlowCounts{Open: 2, Sent: number(5)}), aFlow("b", "shop/cart", "us", FlowCounts{Open: 1}), gone}
	l := NewTrafficList(Viewpoint{}, func(each func(Traffic)) {
		backends := []BackendTraffic{{Cluster: "us", Connects: 4}, {Cluster: "eu", Connects: 1}, {Cluster: "eu", Connects: 2}, {Cluster: "asia"}}
		each(Traffic{Service: "shop/cart", Connects: 7, Refused: 1, Backends: backends})
		each(Traffic{Service: "shop/cart", Connects: 1})
		each(Traffic{Service: "shop/idle", Backends: backends[3:]})
	}, flows, "")
	if len(l.Items) != 2 || l.Items[0].Service != "241.0.0.9:80/TCP" || l.Items[0].Open != 1 {
		t.Fatalf("got %+v", l.Items)
	}
	s := l.Items[1]
	if s.Connects != 8 || s.Refused != 1 || s.Open != 3 || *s.Sent != 5 || len(s.Clusters) != 2 {
		t.Errorf("got %+v", s)
	}
	if eu := s.Clusters[0]; eu.Cluster != "eu" || eu.Connects != 3 || eu.Open != 2 {
		t.Errorf("eu: %+v", eu)
	}
	if us := s.Clusters[1]; us.Connects != 4 || us.Open != 1 || us.Sent != nil {
		t.Errorf("us: %+v", us)
	}
}
