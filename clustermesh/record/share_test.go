package record

import (
	"net/netip"
	"reflect"
	"testing"
	"unsafe"

	"strait.io/strait/clustermesh"
	"strait.io/strait/internal/l4"
)

// What is shared says what it said, lists of ports that differ by little stay apart, and equal words are one.
func TestShare(t *testing.T) {
	fresh := func() (c clustermesh.Content) {
		for i := range 3 * maxShared {
			e := clustermesh.Endpoint{Service: clustermesh.ServiceName{Namespace: "default", Name: string([]byte("serve"))},
				Addr: netip.AddrFrom4([4]byte{10, 0, 0, byte(i)}), Node: clustermesh.NodeName([]byte("n1")), Zone: string([]byte("z1")), Pod: string(rune('a' + i))}
			if i > 0 {
				e.Ports = []clustermesh.EndpointPort{{Name: "http", Proto: l4.TCP, Port: uint16(i / 2)}}
			}
			c.Endpoints = append(c.Endpoints, e)
			c.Exports = append(c.Exports, clustermesh.Export{Service: e.Service, Families: []clustermesh.Family{clustermesh.IPv4},
				Ports: []clustermesh.ServicePort{{Name: "http", Proto: l4.TCP, Port: uint16(i / 2)}}})
		}
		return c
	}
	got := fresh()
	Share(&got)
	if !reflect.DeepEqual(got, fresh()) {
		t.Errorf("shared: %+v", got)
	}
	a, b := got.Endpoints[2], got.Endpoints[3]
	if &a.Ports[0] != &b.Ports[0] {
		t.Error("equal lists of ports are two")
	}
	if x, y := got.Exports[2], got.Exports[3]; &x.Ports[0] != &y.Ports[0] || &x.Families[0] != &y.Families[0] {
		t.Error("equal lists of an export's ports or families are two")
	}
	if unsafe.StringData(a.Service.Name) != unsafe.StringData(b.Service.Name) || unsafe.StringData(a.Zone) != unsafe.StringData(b.Zone) {
		t.Error("equal words are two")
	}
}
