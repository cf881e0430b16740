package daemon

import (
	"errors"
	"net/netip"
	"strings"
	"testing"
	"time"

	"strait.io/strait/clustermesh"
	"strait.io/strait/daemon/api"
	"strait.io/strait/daemon/api/table"
	"strait.io/strait/datapath/sockdestroy"
)

// TestCountOpen: the sockets of a drained cluster are counted, and no others.
func TestCountOpen(t *testing.T) {
	v := twoClusters()
	socket := func(cookie uint64, backend string, connected bool) sockdestroy.Record {
		return sockdestroy.Record{Cookie: cookie, Backend: netip.MustParseAddrPort(backend), Connected: connected}
	}
	read := func() ([]sockdestroy.Record, error) {
		return []sockdestroy.Record{
			socket(1, "10.2.1.10:8080", true),
			socket(1, "10.2.1.10:8080", true),        // its record moved while it was read
			socket(2, "[::ffff:10.2.1.10]:80", true), // a client with an IPv6 socket
			socket(3, "10.2.1.99:8080", true),        // a pod that is gone
			socket(4, "10.2.1.10:8080", false),       // moves with its next datagram
			socket(5, "10.9.1.10:8080", true),        // elsewhere
		}, nil
	}
	cs := v.clusters()
	if err := v.countOpen(cs, read); err != nil || cs[0].Open != nil || cs[1].Open != nil {
		t.Errorf("nothing is drained: %+v, %v", cs, err)
	}
	drain := clustermesh.Origin{Cluster: "b"}
	r := v.state.Records.Get(drain)
	r.Content.Drain = &clustermesh.Drain{Since: 1}
	v.state.Records = v.state.Records.With(drain, r)
	v.applied = time.Unix(1000, 0)
	cs = v.clusters()
	if err := v.countOpen(cs, read); err != nil || cs[0].Open != nil || cs[1].Open == nil || *cs[1].Open != 3 {
		t.Fatalf("b is drained: %+v, %v; want 3 open sockets", cs, err)
	}
	if row := table.Clusters.Rows(cs[1:2], time.Time{}, table.Form{})[0]; !strings.HasSuffix(row[1], "drained 100 %, 3 open") {
		t.Errorf("the row has %q", row[1])
	}
	none := func() ([]sockdestroy.Record, error) { return nil, errors.New("no maps") }
	cs = []api.Cluster{{Name: "b", Drained: 1}}
	if err := v.countOpen(cs, none); err == nil || cs[0].Open != nil {
		t.Errorf("the maps cannot be read: %+v, %v", cs[0], err)
	}
}
