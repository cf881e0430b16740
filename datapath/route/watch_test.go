package route

import (
	"encoding/binary"
	"net/netip"
	"testing"

	"golang.org/x/sys/unix"
)

// routeMessage builds an rtmsg with a destination and a table.
func routeMessage(family, bits, protocol byte, dst []byte, table uint32) []byte {
	m := []byte{family, bits, 0, 0, 0, protocol, 0, 0, 0, 0, 0, 0}
	m = attr(m, unix.RTA_DST, dst)
	return attr(m, unix.RTA_TABLE, binary.NativeEndian.AppendUint32(nil, table))
}

func linkMessage(flags uint32, name string) []byte {
	m := make([]byte, unix.SizeofIfInfomsg)
	binary.NativeEndian.PutUint32(m[8:], flags)
	return attr(m, unix.IFLA_IFNAME, append([]byte(name), 0))
}

func attr(m []byte, typ uint16, value []byte) []byte {
	m = binary.NativeEndian.AppendUint16(m, uint16(unix.SizeofRtAttr+len(value)))
	m = binary.NativeEndian.AppendUint16(m, typ)
	m = append(m, value...)
	for len(m)%unix.RTA_ALIGNTO != 0 {
		m = append(m, 0)
	}
	return m
}

func testWatched() watched {
	return watched{device: "strait0", table: DefaultTable, wanted: map[netip.Prefix]bool{dst("10.2.0.0/16"): true, dst("fd00:2::/64"): true}}
}

func TestConcerns(t *testing.T) {
	v6 := netip.MustParseAddr("fd00:2::").AsSlice()
	v4 := []byte{10, 2, 0, 0}
	const static, up, lower = unix.RTPROT_STATIC, unix.IFF_UP, unix.IFF_LOWER_UP
	for name, c := range map[string]struct {
		typ  uint16
		data []byte
		want bool
	}{
		"our route is deleted":          {unix.RTM_DELROUTE, routeMessage(unix.AF_INET, 16, Protocol, v4, DefaultTable), true},
		"our IPv6 route is deleted":     {unix.RTM_DELROUTE, routeMessage(unix.AF_INET6, 64, Protocol, v6, DefaultTable), true},
		"we put it":                     {unix.RTM_NEWROUTE, routeMessage(unix.AF_INET, 16, Protocol, v4, DefaultTable), false},
		"a foreign route takes over":    {unix.RTM_NEWROUTE, routeMessage(unix.AF_INET, 16, static, v4, DefaultTable), true},
		"a foreign route goes":          {unix.RTM_DELROUTE, routeMessage(unix.AF_INET, 16, static, v4, DefaultTable), false},
		"another table":                 {unix.RTM_DELROUTE, routeMessage(unix.AF_INET, 16, Protocol, v4, 254), false},
		"an unwanted one":               {unix.RTM_DELROUTE, routeMessage(unix.AF_INET, 24, Protocol, v4, DefaultTable), false},
		"rule deleted":                  {unix.RTM_DELRULE, routeMessage(unix.AF_INET, 0, 0, nil, DefaultTable), true},
		"rule of another table deleted": {unix.RTM_DELRULE, routeMessage(unix.AF_INET, 0, 0, nil, 254), false},
		"the device is well":            {unix.RTM_NEWLINK, linkMessage(up|lower, "strait0"), false},
		"the device is down":            {unix.RTM_NEWLINK, linkMessage(lower, "strait0"), true},
		"the device has no carrier":     {unix.RTM_NEWLINK, linkMessage(up, "strait0"), true},
		"the device is deleted":         {unix.RTM_DELLINK, linkMessage(up|lower, "strait0"), true},
		"another device is deleted":     {unix.RTM_DELLINK, linkMessage(up|lower, "eth0"), false},
		"an address came":               {unix.RTM_NEWADDR, attr(make([]byte, unix.SizeofIfAddrmsg), unix.IFA_ADDRESS, v4), true},
		"a link-local address came":     {unix.RTM_NEWADDR, attr(make([]byte, unix.SizeofIfAddrmsg), unix.IFA_ADDRESS, []byte{169, 254, 1, 1}), false},
		"cut short":                     {unix.RTM_DELROUTE, []byte{1, 2, 3}, false},
		"an attribute that lies":        {unix.RTM_DELROUTE, append(make([]byte, unix.SizeofRtMsg), 255, 255, 1, 0), false},
	} {
		if got := testWatched().concerns(c.typ, c.data); got != c.want {
			t.Errorf("%s: concerns = %v", name, got)
		}
	}
}

func FuzzConcerns(f *testing.F) {
	f.Add(uint16(unix.RTM_DELROUTE), routeMessage(unix.AF_INET, 16, Protocol, []byte{10, 2, 0, 0}, DefaultTable))
	f.Add(uint16(unix.RTM_NEWLINK), linkMessage(unix.IFF_UP, "strait0"))
	f.Add(uint16(unix.RTM_NEWADDR), attr(make([]byte, unix.SizeofIfAddrmsg), unix.IFA_ADDRESS, []byte{10, 0, 0, 1}))
	f.Add(uint16(unix.RTM_DELRULE), []byte{2})
	f.Fuzz(func(t *testing.T, typ uint16, data []byte) {
		before := string(data)
		testWatched().concerns(typ, data)
		if string(data) != before {
			t.Error("the message was changed")
		}
	})
}
