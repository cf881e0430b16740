package api

import (
	"fmt"
	"strings"
	"testing"
	"time"
)

// traffic is what a node answers at a second: "SERVICE CONNECTS/REFUSED CLUSTER=CONNECTS,OPEN …".
func traffic(t *testing.T, node string, second int, lines ...string) *TrafficList {
	t.Helper()
	cluster, name, _ := strings.Cut(node, "/")
	l := &TrafficList{SeenFrom: Viewpoint{Cluster: cluster, Node: name, Time: time.Unix(int64(second), 0)}}
	for _, line := range lines {
		fields := strings.Fields(line)
		s := ServiceTraffic{Service: fields[0]}
		if _, err := fmt.Sscanf(fields[1], "%d/%d", &s.Connects, &s.Refused); err != nil {
			t.Fatal(err)
		}
		for _, f := range fields[2:] {
			cluster, counts, _ := strings.Cut(f, "=")
			c := s.cluster(cluster)
			if _, err := fmt.Sscanf(counts, "%d,%d", &c.Connects, &c.Open); err != nil {
				t.Fatal(err)
			}
			s.Open += c.Open
		}
		l.Items = append(l.Items, s)
	}
	return l
}

// show writes rows as "NAME OPEN NEW REFUSED CLUSTER=PERCENT …".
func show(l *TopList) string {
	known := func(n *float64) string {
		if n == nil {
			return "-"
		}
		return fmt.Sprintf("%.1f", *n)
	}
	var lines []string
	for _, r := range l.Items {
		line := fmt.Sprintf("%s %d %s %s", r.Name, r.Open, known(r.New), known(r.Refused))
		for _, s := range r.To {
			line += fmt.Sprintf(" %s=%.0f", s.Cluster, s.Share*100)
		}
		lines = append(lines, line)
	}
	return strings.Join(lines, "\n")
}

func TestTop(t *testing.T) {
	one := []*TrafficList{
		traffic(t, "us/n1", 10, "shop/cart 100/0 eu=40,1 us=60,2", "shop/pay 5/7"),
		traffic(t, "us/n2", 11, "shop/cart 10/0 us=10,0"),
	}
	two := []*TrafficList{
		traffic(t, "us/n1", 12, "shop/cart 120/0 eu=46,3 us=74,2", "shop/new 4/0 us=4,0", "shop/pay 5/9"),
		traffic(t, "us/n2", 15, "shop/cart 50/0 us=50,4"),
		traffic(t, "us/n3", 12, "shop/cart 900/0 us=900,1"), // it did not answer before
	}
	for _, c := range []struct{ name, by, want string }{
		{"by services", "services", "shop/cart 10 20.0 0.0 us=85 eu=15\nshop/new 0 2.0 0.0 us=100\nshop/pay 0 0.0 1.0"},
		{"by clusters", "clusters", "us 7 19.0 -\neu 3 3.0 -"},
		{"by nodes", "nodes", "us/n1 5 12.0 1.0 us=75 eu=25\nus/n2 4 10.0 0.0 us=100\nus/n3 1 - - us=100"},
	} {
		if got := show(NewTop(c.by, one, two)); got != c.want {
			t.Errorf("%s: got\n%s\nwant\n%s", c.name, got, c.want)
		}
	}
	if l := NewTop("services", one, two); l.Seconds != 4 {
		t.Errorf("got %v seconds", l.Seconds)
	}
	if got := show(NewTop("services", nil, one)); got != "shop/cart 3 - - us=67 eu=33\nshop/pay 0 - -" {
		t.Errorf("one answer alone: got\n%s", got)
	}
	// A backend left with its counters, and a frontend was made again: unknown, not negative.
	back := []*TrafficList{traffic(t, "us/n1", 12, "shop/cart 90/0 eu=50,0 us=20,1")}
	if got := show(NewTop("services", one, back)); got != "shop/cart 1 - 0.0 eu=100" {
		t.Errorf("counters that went back: got\n%s", got)
	}
}

func TestSortTop(t *testing.T) {
	rate := func(n float64) *float64 { return &n }
	rows := []TopRow{{Name: "a", FlowCounts: FlowCounts{Open: 1}}, {Name: "b", New: rate(1), FlowCounts: FlowCounts{Open: 5, Sent: number(1)}},
		{Name: "c", New: rate(2), Refused: rate(1), FlowCounts: FlowCounts{Received: number(9)}}}
	for order, want := range map[string]string{"new": "cba", "refused": "cba", "open": "bac", "sent": "bac", "received": "cba", "name": "abc"} {
		got := ""
		SortTop(rows, order)
		for _, r := range rows {
			got += r.Name
		}
		if got != want {
			t.Errorf("by %s: got %s, want %s", order, got, want)
		}
	}
	if len(TopOrders) != 6 {
		t.Error("an order is not tested")
	}
}
