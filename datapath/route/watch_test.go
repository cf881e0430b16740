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

func TestConcernsUnderlay(t *testing.T) {
	underlays := []underlay{
		{dst: netip.MustParseAddr("192.0.2.7"), mtu: 1300, link: 3, linkMTU: 1500}, {dst: netip.MustParseAddr("198.51.100.1"), mtu: 1500, link: 3, linkMTU: 1500},
		{dst: netip.MustParseAddr("203.0.113.9")},
	}
	link := func(index, mtu uint32) []byte {
		m := make([]byte, unix.SizeofIfInfomsg)
		binary.NativeEndian.PutUint32(m[4:], index)
		return attr(m, unix.IFLA_MTU, binary.NativeEndian.AppendUint32(nil, mtu))
	}
	v4 := func(bits byte, dst ...byte) []byte {
		return routeMessage(unix.AF_INET, bits, unix.RTPROT_STATIC, dst, unix.RT_TABLE_MAIN)
	}
	for name, c := range map[string]struct {
		typ  uint16
		data []byte
		want bool
	}{
		"the link as it was":           {unix.RTM_NEWLINK, link(3, 1500), false},
		"the link has another MTU":     {unix.RTM_NEWLINK, link(3, 1400), true},
		"another link":                 {unix.RTM_NEWLINK, link(4, 1400), false},
		"the link is gone":             {unix.RTM_DELLINK, link(3, 1500), true},
		"a route to one":               {unix.RTM_NEWROUTE, v4(32, 198, 51, 100, 1), true},
		"a route to where none led":    {unix.RTM_NEWROUTE, v4(24, 203, 0, 113, 0), true},
		"the default route":            {unix.RTM_DELROUTE, routeMessage(unix.AF_INET, 0, unix.RTPROT_STATIC, nil, unix.RT_TABLE_MAIN), true},
		"the IPv6 default route":       {unix.RTM_DELROUTE, routeMessage(unix.AF_INET6, 0, unix.RTPROT_STATIC, nil, unix.RT_TABLE_MAIN), false},
		"a pod's route":                {unix.RTM_NEWROUTE, v4(32, 192, 0, 2, 8), false},
		"a network between":            {unix.RTM_NEWROUTE, v4(24, 195, 0, 0, 0), false},
		"strait's own route to all":    {unix.RTM_NEWROUTE, routeMessage(unix.AF_INET, 0, Protocol, nil, DefaultTable), false},
		"more bits than the address":   {unix.RTM_NEWROUTE, v4(99, 192, 0, 2, 7), false},
		"cut short":                    {unix.RTM_NEWROUTE, []byte{1, 2}, false},
		"a link's message, cut short":  {unix.RTM_NEWLINK, []byte{1, 2}, false},
		"a link that tells of no MTU ": {unix.RTM_NEWLINK, linkMessage(0, "eth0"), false},
	} {
		if got := concernsUnderlay(underlays, c.typ, c.data, DefaultTable); got != c.want {
			t.Errorf("%s: %v", name, got)
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
