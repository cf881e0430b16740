package main

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"math/bits"
	"net/netip"
	"os/exec"
	"path/filepath"
	"strconv"
	"testing"

	"strait.io/strait/cli/kernel"
	"strait.io/strait/internal/l4"
	"strait.io/strait/internal/testutil"
)

func findBpftool(t *testing.T) string {
	t.Helper()
	for _, p := range []string{"bpftool", "/usr/sbin/bpftool", "/sbin/bpftool"} {
		if path, err := exec.LookPath(p); err == nil {
			return path
		}
	}
	testutil.Missing(t, "needs bpftool: apt install bpftool")
	return ""
}

// bpftool reads pins and decodes them by the types that the maps carry.
type bpftool struct {
	t    *testing.T
	path string
	pins string
}

// entry is one element of a map.
type entry struct {
	Key   fields `json:"key"`
	Value fields `json:"value"`
	// Values are those of the CPUs, in a map that has one for each.
	Values []struct {
		Value fields `json:"value"`
	} `json:"values"`
}

// fields are a struct's, or a single number under the name "".
type fields map[string]any

// UnmarshalJSON keeps numbers exact.
func (f *fields) UnmarshalJSON(text []byte) error {
	var v any
	d := json.NewDecoder(bytes.NewReader(text))
	d.UseNumber()
	if err := d.Decode(&v); err != nil && err != io.EOF {
		return err
	}
	if object, ok := v.(map[string]any); ok {
		*f = object
		return nil
	}
	*f = fields{"": v}
	return nil
}

func (f fields) wide(name string) uint64 {
	n, err := strconv.ParseUint(fmt.Sprint(f[name]), 0, 64)
	if err != nil {
		panic(fmt.Sprintf("field %q of %v: %v", name, f, err))
	}
	return n
}

func (f fields) number(name string) int { return int(f.wide(name)) }

func (f fields) addrPort(addr, port string) netip.AddrPort {
	var b [16]byte
	for i, x := range f[addr].([]any) {
		n, err := strconv.ParseUint(fmt.Sprint(x), 0, 8)
		if err != nil {
			panic(err)
		}
		b[i] = byte(n)
	}
	return netip.AddrPortFrom(netip.AddrFrom16(b).Unmap(), bits.ReverseBytes16(uint16(f.wide(port))))
}

func (f fields) addr(addr, port string) l4.Addr {
	at := f.addrPort(addr, port)
	return l4.New(at.Addr(), at.Port(), l4.Proto(f.wide("proto")))
}

func (f fields) object(name string) fields { return f[name].(map[string]any) }

func (b bpftool) dump(name string) (entries []entry) {
	b.t.Helper()
	var stderr bytes.Buffer
	cmd := exec.CommandContext(b.t.Context(), b.path, "-j", "map", "dump", "pinned", filepath.Join(b.pins, name))
	cmd.Stderr = &stderr
	out, err := cmd.Output()
	if err != nil {
		b.t.Fatalf("bpftool, map %s: %v: %s%s", name, err, out, stderr.Bytes())
	}
	var all []struct {
		Formatted entry `json:"formatted"`
	}
	if err := json.Unmarshal(out, &all); err != nil {
		b.t.Fatalf("bpftool, map %s: %v: %.300s", name, err, out)
	}
	for _, e := range all {
		entries = append(entries, e.Formatted)
	}
	return entries
}

// values are those of an array.
func (b bpftool) values(name string) map[int]fields {
	out := map[int]fields{}
	for _, e := range b.dump(name) {
		out[e.Key.number("")] = e.Value
	}
	return out
}

// sums are a counter's, over all CPUs.
func (b bpftool) sums(name, counter string) map[int]uint64 {
	out := map[int]uint64{}
	for _, e := range b.dump(name) {
		for _, cpu := range e.Values {
			out[e.Key.number("")] += cpu.Value.wide(counter)
		}
	}
	return out
}

func (b bpftool) services(frontends map[int]l4.Addr) (out []kernel.BPFService) {
	sets := b.values("sets")
	connects, refused := b.sums("frontend_counters", "connects"), b.sums("frontend_counters", "refused")
	for index, a := range frontends {
		s := sets[index]
		out = append(out, kernel.BPFService{Named: kernel.Named{Frontend: a}, Index: uint32(index), Base: uint32(s.wide("base")),
			Count: uint32(s.wide("count")), AffinitySeconds: uint32(s.wide("affinity")), Connects: connects[index], Refused: refused[index]})
	}
	return out
}

// eachSlot calls fn for the slots of every set.
func (b bpftool) eachSlot(frontends map[int]l4.Addr, fn func(l4.Addr, int, fields)) {
	sets, slots := b.values("sets"), b.values("backends")
	for index, a := range frontends {
		for i := range sets[index].number("count") {
			slot := sets[index].number("base") + i
			fn(a, slot, slots[slot])
		}
	}
}

func (b bpftool) backends(frontends map[int]l4.Addr) (out []kernel.BPFBackend) {
	connects := b.sums("backend_counters", "connects")
	b.eachSlot(frontends, func(a l4.Addr, _ int, f fields) {
		out = append(out, kernel.BPFBackend{Named: kernel.Named{Frontend: a}, Backend: f.addrPort("addr", "port"), Weight: uint32(f.wide("weight_minus_1")) + 1,
			Connects: connects[f.number("counter")]})
	})
	return out
}

func (b bpftool) slots(frontends map[int]l4.Addr) (out []kernel.BPFSlot) {
	b.eachSlot(frontends, func(a l4.Addr, slot int, f fields) {
		out = append(out, kernel.BPFSlot{Slot: uint32(slot), Named: kernel.Named{Frontend: a}, Backend: f.addrPort("addr", "port"), Threshold: uint32(f.wide("threshold")),
			Alias: uint32(f.wide("alias"))})
	})
	return out
}

func (b bpftool) affinity() (out []kernel.BPFAffinity) {
	for _, e := range b.dump("affinities") {
		out = append(out, kernel.BPFAffinity{Named: kernel.Named{Frontend: e.Key.object("frontend").addr("addr", "port")},
			Client: e.Key.wide("client"), Backend: e.Value.addrPort("backend", "port")})
	}
	return out
}

// sockets lists the records at home. bpftool cannot read the storage of sockets.
func (b bpftool) sockets() (out []kernel.BPFSocket) {
	for _, e := range b.dump("sockets") {
		flow, cookie := e.Value.object("flow"), e.Value.wide("cookie")
		if cookie != 0 {
			out = append(out, kernel.BPFSocket{Cookie: cookie, Named: kernel.Named{Frontend: flow.addr("frontend", "frontend_port")},
				Backend: flow.addrPort("backend", "backend_port"), Connected: flow.wide("connected") != 0})
		}
	}
	return out
}
