package socklb

import (
	"math"
	"net/netip"
	"slices"
	"strings"
	"testing"
	"unsafe"

	"pgregory.net/rapid"

	"strait.io/strait/datapath"
	"strait.io/strait/datapath/socklb/layout"
	"strait.io/strait/internal/l4"
)

// drawIP draws an address of a family, from few, so that repeats happen.
func drawIP(v4 bool) *rapid.Generator[netip.Addr] {
	return rapid.Custom(func(t *rapid.T) netip.Addr {
		n := rapid.ByteRange(1, 6).Draw(t, "host")
		if v4 {
			return netip.AddrFrom4([4]byte{10, 0, 0, n})
		}
		return netip.AddrFrom16([16]byte{0: 0xfd, 15: n})
	})
}

// drawFrontend draws a valid frontend, its backends in any order and with repeats.
func drawFrontend(maxBackends int) *rapid.Generator[datapath.Frontend] {
	return rapid.Custom(func(t *rapid.T) datapath.Frontend {
		v4 := rapid.Bool().Draw(t, "v4")
		backend := rapid.Custom(func(t *rapid.T) datapath.Backend {
			return datapath.Backend{
				IP:     drawIP(v4).Draw(t, "ip"),
				Port:   rapid.Uint16Range(1, 3).Draw(t, "port"),
				Weight: rapid.SampledFrom([]uint32{1, 2, datapath.MaxWeight}).Draw(t, "weight"),
			}
		})
		return datapath.Frontend{
			Addr: l4.New(drawIP(v4).Draw(t, "vip"), rapid.Uint16Range(1, 2).Draw(t, "port"),
				rapid.SampledFrom([]l4.Proto{l4.TCP, l4.UDP}).Draw(t, "proto")),
			Backends:        rapid.SliceOfN(backend, 0, maxBackends).Draw(t, "backends"),
			AffinitySeconds: rapid.SampledFrom([]uint32{0, 0, 1, 10800}).Draw(t, "affinity"),
		}
	})
}

// What is written is what is read back.
func TestCodecRoundTrip(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		f, err := normal(drawFrontend(20).Draw(t, "frontend"))
		if err != nil {
			t.Fatal(err)
		}
		if got := layout.KeyOf(f.Addr).L4(); got != f.Addr {
			t.Fatalf("key of %s reads back as %s", f.Addr, got)
		}
		if got := layout.Backends(slotsOf(f.Backends, make([]uint32, len(f.Backends)))); !slices.Equal(got, f.Backends) {
			t.Fatalf("slots of %v read back as %v", f.Backends, got)
		}
	})
}

// The programs search a set by address and port: slots must be in the order of their bytes.
func TestSlotsAreInByteOrder(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		f, err := normal(drawFrontend(20).Draw(t, "frontend"))
		if err != nil {
			t.Fatal(err)
		}
		slots := slotsOf(f.Backends, make([]uint32, len(f.Backends)))
		for i := 1; i < len(slots); i++ {
			a, b := slots[i-1], slots[i]
			if c := slices.Compare(a.Addr[:], b.Addr[:]); c > 0 || c == 0 && layout.Port(a.Port) >= layout.Port(b.Port) {
				t.Fatalf("slot %d is not above the one before: %v %v", i, a, b)
			}
		}
	})
}

// The sizes are part of the layout that is pinned; the programs assume them.
func TestLayout(t *testing.T) {
	for name, s := range map[string][2]uintptr{
		"service_key": {unsafe.Sizeof(layout.ServiceKey{}), 20},
		"service":     {unsafe.Sizeof(layout.Service{}), 4},
		"set":         {unsafe.Sizeof(layout.Set{}), 16},
		"backend":     {unsafe.Sizeof(layout.Backend{}), 32},
		"flow":        {unsafe.Sizeof(layout.Flow{}), 48},
		"record":      {unsafe.Sizeof(layout.Record{}), 64},
		"more_key":    {unsafe.Sizeof(layout.MoreKey{}), 16},

		"frontend_counter": {unsafe.Sizeof(layout.FrontendCounter{}), 16},
		"backend_counter":  {unsafe.Sizeof(layout.BackendCounter{}), 8},
		"affinity_key":     {unsafe.Sizeof(layout.AffinityKey{}), 32},
		"affinity":         {unsafe.Sizeof(layout.Affinity{}), 32},
		"optout":           {unsafe.Sizeof(layout.OptOut{}), 8},
		"optout_sieve":     {unsafe.Sizeof(layout.OptOutSieve{}), 8 + 4096/8},
	} {
		if s[0] != s[1] {
			t.Errorf("struct %s: %d bytes, want %d; a changed layout needs a new number in pins.go", name, s[0], s[1])
		}
	}
	e := extent{base: 7, count: 9}
	set := layout.Set{Base: e.base, Count: e.count}
	if *layout.WordOf(&set) != e.word() || extentOf(e.word()) != e {
		t.Errorf("word %#x is %+v", e.word(), set)
	}
	if math.MaxUint16 != datapath.MaxWeight-1 {
		t.Errorf("weight_minus_1 does not hold MaxWeight %d", datapath.MaxWeight)
	}
}

func TestNormalRefuses(t *testing.T) {
	ok := func() datapath.Frontend {
		return datapath.Frontend{Addr: addr("10.96.0.1:80/TCP"), Backends: backends("10.0.0.1:80")}
	}
	for want, change := range map[string]func(*datapath.Frontend){
		"protocol SCTP has no socket hook": func(f *datapath.Frontend) { f.Addr.Proto = l4.SCTP },
		"address invalid IP cannot be":     func(f *datapath.Frontend) { f.Addr.IP = netip.Addr{} },
		"address 0.0.0.0 cannot be":        func(f *datapath.Frontend) { f.Addr.IP = netip.IPv4Unspecified() },
		"address ::ffff:1.2.3.4 cannot be": func(f *datapath.Frontend) { f.Addr.IP = netip.MustParseAddr("::ffff:1.2.3.4") },
		"address fe80::1%lo cannot be":     func(f *datapath.Frontend) { f.Addr.IP = netip.MustParseAddr("fe80::1%lo") },
		"port is 0":                        func(f *datapath.Frontend) { f.Addr.Port = 0 },
		"of another IP family":             func(f *datapath.Frontend) { f.Addr.IP = netip.MustParseAddr("fd00::1") },
		"backends[0] 10.0.0.1:0: port":     func(f *datapath.Frontend) { f.Backends[0].Port = 0 },
		"weight 0 is not in 1":             func(f *datapath.Frontend) { f.Backends[0].Weight = 0 },
		"weight 65537 is not":              func(f *datapath.Frontend) { f.Backends[0].Weight = 65537 },
		"backends[0] invalid AddrPort":     func(f *datapath.Frontend) { f.Backends[0].IP = netip.Addr{} },
	} {
		f := ok()
		change(&f)
		if _, err := normal(f); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("want %q, got %v", want, err)
		}
	}
	if _, err := normal(ok()); err != nil {
		t.Error(err)
	}
}

// addr and backends read test literals; a backend's weight is 1 unless given: "10.0.0.1:80*3".
func addr(s string) l4.Addr {
	a, err := l4.Parse(s)
	if err != nil {
		panic(err)
	}
	return a
}

func backends(list ...string) []datapath.Backend {
	out := []datapath.Backend{}
	for _, s := range list {
		s, weight, _ := strings.Cut(s, "*")
		ap := netip.MustParseAddrPort(s)
		b := datapath.Backend{IP: ap.Addr(), Port: ap.Port(), Weight: 1}
		for _, c := range weight {
			b.Weight = uint32(c - '0')
		}
		out = append(out, b)
	}
	return out
}
