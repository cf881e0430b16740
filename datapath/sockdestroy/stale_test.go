package sockdestroy

import (
	"encoding/json"
	"net/netip"
	"slices"
	"testing"

	"pgregory.net/rapid"

	"strait.io/strait/datapath"
	"strait.io/strait/internal/l4"
)

func at(s string) netip.AddrPort { return netip.MustParseAddrPort(s) }

func frontend(addr string, backends ...string) datapath.Frontend {
	a, err := l4.Parse(addr)
	if err != nil {
		panic(err)
	}
	f := datapath.Frontend{Addr: a}
	for _, b := range backends {
		f.Backends = append(f.Backends, datapath.Backend{IP: at(b).Addr(), Port: at(b).Port(), Weight: 1})
	}
	return f
}

func TestStale(t *testing.T) {
	const vip, pod, other = "10.96.0.1:53", "10.1.0.1:53", "10.1.0.2:53"
	udp := Record{Cookie: 7, Proto: l4.UDP, Frontend: at(vip), Backend: at(pod), Connected: true}
	with := func(change func(*Record)) Record { r := udp; change(&r); return r }
	tcp := with(func(r *Record) { r.Proto = l4.TCP })
	dead := []netip.Addr{at(pod).Addr()}
	gone := Policy{TCP: TCPGone}
	tests := []struct {
		name   string
		record Record
		want   []datapath.Frontend
		gone   []netip.Addr
		policy Policy
		stale  bool
	}{
		{"UDP, a backend", udp, []datapath.Frontend{frontend(vip+"/UDP", other, pod)}, nil, Policy{}, false},
		{"UDP, withdrawn", udp, []datapath.Frontend{frontend(vip+"/UDP", other)}, nil, Policy{}, true},
		{"UDP, the last withdrawn", udp, []datapath.Frontend{frontend(vip + "/UDP")}, nil, Policy{}, true},
		{"UDP, frontend removed", udp, nil, nil, Policy{}, true},
		{"UDP, backend of another port", udp, []datapath.Frontend{frontend(vip+"/UDP", "10.1.0.1:54")}, nil, Policy{}, true},
		{"UDP, backend of another frontend", udp, []datapath.Frontend{frontend(vip+"/UDP", other), frontend("10.96.0.2:53/UDP", pod)}, nil, Policy{}, true},
		{"UDP, backend of the TCP frontend", udp, []datapath.Frontend{frontend(vip+"/TCP", pod), frontend(vip+"/UDP", other)}, nil, Policy{}, true},
		{"UDP, a backend of a dead machine, still wanted", udp, []datapath.Frontend{frontend(vip+"/UDP", pod)}, dead, gone, false},
		{"UDP, not connected", with(func(r *Record) { r.Connected = false }), nil, nil, Policy{}, false},
		{"UDP, no cookie", with(func(r *Record) { r.Cookie = 0 }), nil, nil, Policy{}, false},
		{"UDP, mapped", with(func(r *Record) {
			r.Frontend, r.Backend = at("[::ffff:10.96.0.1]:53"), at("[::ffff:10.1.0.1]:53")
		}), []datapath.Frontend{frontend(vip+"/UDP", pod)}, nil, Policy{}, false},
		{"SCTP", with(func(r *Record) { r.Proto = l4.SCTP }), nil, dead, gone, false},
		{"TCP, withdrawn", tcp, []datapath.Frontend{frontend(vip+"/TCP", other)}, nil, gone, false},
		{"TCP, dead, policy default", tcp, nil, dead, Policy{}, false},
		{"TCP, dead, policy never", tcp, nil, dead, Policy{TCP: TCPNever}, false},
		{"TCP, dead", tcp, nil, dead, gone, true},
		{"TCP, dead, mapped", tcp, nil, []netip.Addr{netip.MustParseAddr("::ffff:10.1.0.1")}, gone, true},
		{"TCP, another dead", tcp, nil, []netip.Addr{at(other).Addr()}, gone, false},
		{"TCP, dead, still wanted", tcp, []datapath.Frontend{frontend(vip+"/TCP", pod)}, dead, gone, false},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			var want []Target
			if tt.stale {
				want = []Target{{7, tt.record.Proto, at(pod)}}
			}
			if got := Stale([]Record{tt.record}, tt.want, tt.gone, tt.policy); !slices.Equal(got, want) {
				t.Errorf("got %v, want %v", got, want)
			}
		})
	}
}

// TestStaleProperties: whatever there is, a target has a record, and none is a backend of its frontend.
func TestStaleProperties(t *testing.T) {
	addr := func(n int) netip.AddrPort {
		return netip.AddrPortFrom(netip.AddrFrom4([4]byte{10, 0, 0, byte(n)}), 53)
	}
	small := rapid.IntRange(0, 4)
	rapid.Check(t, func(t *rapid.T) {
		records := rapid.SliceOf(rapid.Custom(func(t *rapid.T) Record {
			return Record{
				Cookie: rapid.Uint64Range(0, 9).Draw(t, "cookie"), Connected: rapid.Bool().Draw(t, "connected"),
				Proto:    rapid.SampledFrom([]l4.Proto{l4.TCP, l4.UDP}).Draw(t, "proto"),
				Frontend: addr(small.Draw(t, "frontend")), Backend: addr(small.Draw(t, "backend")),
			}
		})).Draw(t, "records")
		var want []datapath.Frontend
		for n := range small.Draw(t, "frontends") {
			f := datapath.Frontend{Addr: l4.New(addr(n).Addr(), 53, l4.UDP)}
			for b := range small.Draw(t, "backends") {
				f.Backends = append(f.Backends, datapath.Backend{IP: addr(b).Addr(), Port: 53, Weight: 1})
			}
			want = append(want, f)
		}
		got := Stale(records, want, []netip.Addr{addr(1).Addr()}, Policy{TCP: TCPGone})
		for i, s := range got {
			if i > 0 && got[i-1].Cookie >= s.Cookie {
				t.Fatalf("%v after %v", s, got[i-1])
			}
			if !slices.ContainsFunc(records, func(r Record) bool {
				if r.Cookie != s.Cookie || r.Proto != s.Proto || r.Backend != s.Peer || !r.Connected {
					return false
				}
				if r.Proto == l4.TCP {
					return r.Backend.Addr() == addr(1).Addr()
				}
				return !slices.ContainsFunc(want, func(f datapath.Frontend) bool {
					return f.Addr == r.frontend() && slices.ContainsFunc(f.Backends, func(b datapath.Backend) bool { return b.AddrPort() == r.Backend })
				})
			}) {
				t.Fatalf("no record makes %v stale", s)
			}
		}
	})
}

func TestTCPPolicy(t *testing.T) {
	var p struct{ TCP TCPPolicy }
	for _, ok := range []string{"", "never", "gone"} {
		if err := json.Unmarshal([]byte(`{"TCP":"`+ok+`"}`), &p); err != nil || p.TCP != TCPPolicy(ok) {
			t.Errorf("%q: got %q, %v", ok, p.TCP, err)
		}
	}
	if err := json.Unmarshal([]byte(`{"TCP":"always"}`), &p); err == nil {
		t.Error("always: accepted")
	}
}
