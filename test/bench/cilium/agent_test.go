package cilium

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"net/netip"
	"slices"
	"strings"
	"testing"

	"strait.io/strait/datapath"
	"strait.io/strait/internal/l4"
)

func frontend(vip string, pods ...string) datapath.Frontend {
	f := datapath.Frontend{Addr: l4.New(netip.MustParseAddr(vip), 80, l4.TCP)}
	for _, p := range pods {
		f.Backends = append(f.Backends, datapath.Backend{IP: netip.MustParseAddr(p), Port: 8080, Weight: 1})
	}
	return f
}

func heavier(f datapath.Frontend) datapath.Frontend {
	for i := range f.Backends {
		f.Backends[i].Weight++
	}
	return f
}

// TestOrder: the writes come in the order that Cilium's agent has.
func TestOrder(t *testing.T) {
	a := newAgent()
	for _, tc := range []struct {
		want state
		out  []string
	}{
		// Slots are in the order of addresses, whatever the order of the backends.
		{state{frontend: frontend("10.96.0.1", "10.1.0.2", "10.1.0.1")}, []string{
			"backend 1", "slot 1 = 1", "no affinity 1", "backend 2", "slot 2 = 2", "no affinity 2", "reverse 1", "count 2 + 0",
		}},
		{state{frontend: frontend("10.96.0.1", "10.1.0.2", "10.1.0.1")}, nil},
		// Another service shares a backend, which then outlives the first.
		{state{frontend: frontend("10.96.0.2", "10.1.0.1")}, []string{"slot 1 = 1", "no affinity 1", "reverse 2", "count 1 + 0"}},
		// What leaves at once is deleted before its slot is written again.
		{state{frontend: frontend("10.96.0.1", "10.1.0.3")}, []string{
			"delete backend 2", "no affinity 2", "backend 3", "slot 1 = 3", "no affinity 3", "reverse 1", "count 1 + 0", "delete slot 2",
		}},
		// A change of a backend that the map does not show writes its element again.
		{state{frontend: heavier(frontend("10.96.0.1", "10.1.0.3"))}, []string{
			"backend 3", "slot 1 = 3", "no affinity 3", "reverse 1", "count 1 + 0",
		}},
		// What is terminating keeps a slot above the count, and leaves when no one can draw it.
		{state{frontend: frontend("10.96.0.1", "10.1.0.4"), leaving: frontend("10.96.0.1", "10.1.0.3").Backends}, []string{
			"backend 4", "slot 1 = 4", "no affinity 4", "terminating backend 3", "slot 2 = 3", "no affinity 3", "reverse 1", "count 1 + 1",
		}},
		{state{frontend: frontend("10.96.0.1", "10.1.0.4")}, []string{
			"delete backend 3", "no affinity 3", "slot 1 = 4", "no affinity 4", "reverse 1", "count 1 + 0", "delete slot 2",
		}},
		// It is used if there is nothing else.
		{state{frontend: frontend("10.96.0.1"), leaving: frontend("10.96.0.1", "10.1.0.4").Backends}, []string{
			"terminating backend 4", "slot 1 = 4", "no affinity 4", "reverse 1", "count 1 + 0",
		}},
		{state{frontend: frontend("10.96.0.1")}, []string{"delete backend 4", "no affinity 4", "reverse 1", "count 0 + 0", "delete slot 1"}},
	} {
		var got []string
		for _, w := range a.change(tc.want) {
			got = append(got, described(w))
		}
		if !slices.Equal(got, tc.out) {
			t.Errorf("%v: wrote %q, want %q", tc.want, got, tc.out)
		}
	}
}

func described(w write) string {
	switch {
	case w.in == inBackends && w.value == nil:
		return fmt.Sprintf("delete backend %d", w.key)
	case w.in == inBackends && w.value.(backendValue).Flags == terminating:
		return fmt.Sprintf("terminating backend %d", w.key)
	case w.in == inBackends:
		return fmt.Sprintf("backend %d", w.key)
	case w.in == inAffinity && w.value == nil:
		return fmt.Sprintf("no affinity %d", w.key.(affinityKey).Backend)
	case w.in == inReverse:
		id := w.key.([2]byte)
		return fmt.Sprintf("reverse %d", binary.BigEndian.Uint16(id[:]))
	}
	slot := w.key.(serviceKey).Slot
	switch v, _ := w.value.(serviceValue); {
	case w.value == nil:
		return fmt.Sprintf("delete slot %d", slot)
	case slot == 0:
		return fmt.Sprintf("count %d + %d", v.Count, v.Inactive)
	default:
		return fmt.Sprintf("slot %d = %d", slot, v.Backend)
	}
}

// TestBetween: a backend whose weight changes does not leave, and one that moves to another port
// does.
func TestBetween(t *testing.T) {
	have := state{frontend: frontend("10.96.0.1", "10.1.0.1", "10.1.0.2")}
	want := heavier(frontend("10.96.0.1", "10.1.0.1", "10.1.0.2"))
	want.Backends[1].Port = 9090
	between := have.without(want)
	if !between.frontend.Equal(want) || !slices.Equal(between.leaving, have.frontend.Backends[1:]) {
		t.Errorf("got %v", between)
	}
}

// TestBytes: keys and values have the bytes that Cilium's agent writes on a little-endian machine.
func TestBytes(t *testing.T) {
	at := l4.New(netip.MustParseAddr("10.96.0.1"), 80, l4.UDP)
	e := endpoint{Backend: datapath.Backend{IP: netip.MustParseAddr("10.1.2.3"), Port: 8080}, terminating: true}
	for _, tc := range []struct {
		v    any
		want string
	}{
		{keyOf(at, 258), "0a600001 0050 0201 11 00 0000"},
		{slotOf(7, 0x0102), "07000000 0000 0102 00 00 0000"},
		{state{frontend: frontend("10.96.0.1", "10.1.0.1", "10.1.0.2"), leaving: []datapath.Backend{{}}}.master(0x0102), "00000000 0200 0102 00 00 0100"},
		{backendOf(e, l4.UDP), "0a010203 1f90 11 01 0000 00 00"},
		{reverseOf(at), "0a600001 0050"},
		{affinityKey{Backend: 7, ID: network(0x0102)}, "07000000 0102 0000"},
	} {
		var b bytes.Buffer
		if err := binary.Write(&b, binary.LittleEndian, tc.v); err != nil {
			t.Fatal(err)
		}
		if got := fmt.Sprintf("%x", b.Bytes()); got != strings.ReplaceAll(tc.want, " ", "") {
			t.Errorf("%+v: %s, want %s", tc.v, got, tc.want)
		}
	}
}

// TestHeaders: tracing is the only difference between the two configurations.
func TestHeaders(t *testing.T) {
	traced, untraced := nodeConfig(1, true), nodeConfig(1, false)
	if strings.Replace(traced, "#define TRACE_SOCK_NOTIFY 1\n", "", 1) != untraced || traced == untraced {
		t.Errorf("traced:\n%s\nuntraced:\n%s", traced, untraced)
	}
	if !strings.Contains(untraced, "#define HOST_NETNS_COOKIE 1\n") {
		t.Errorf("no cookie in:\n%s", untraced)
	}
}
