package wireguard

import (
	"maps"
	"net/netip"
	"slices"
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"

	"strait.io/strait/datapath"
	"strait.io/strait/internal/key"
)

var (
	now   = time.Unix(1_700_000_000, 0)
	addrA = netip.MustParseAddrPort("192.0.2.1:51820")
	addrB = netip.MustParseAddrPort("192.0.2.2:51820")
	addrC = netip.MustParseAddrPort("192.0.2.3:51820")
	self  = key.Public{99}
)

func prefixes(text string) (ps []netip.Prefix) {
	for _, f := range strings.Fields(text) {
		ps = append(ps, netip.MustParsePrefix(f))
	}
	return ps
}

func peer(k byte, underlay netip.AddrPort, ips string) datapath.Peer {
	return datapath.Peer{Name: "n" + string('0'+k), Key: key.Public{k}, Underlay: underlay, AllowedIPs: prefixes(ips)}
}

func status(k byte, underlay netip.AddrPort, ips string) PeerStatus {
	return PeerStatus{Key: key.Public{k}, Underlay: underlay, AllowedIPs: prefixes(ips)}
}

func TestRewrite(t *testing.T) {
	none := netip.AddrPort{}
	for name, c := range map[string]struct {
		have, want, last netip.AddrPort
		handshake        time.Duration // ago
		rewrite          bool
	}{
		"the same":                                {have: addrA, want: addrA, last: addrA},
		"roamed":                                  {have: addrB, want: addrA, last: addrA},
		"roamed, long silent":                     {have: addrB, want: addrA, last: addrA, handshake: time.Hour},
		"newly wanted":                            {have: addrA, want: addrB, last: addrA, rewrite: true},
		"roamed, then newly wanted":               {have: addrC, want: addrB, last: addrA, rewrite: true},
		"roamed to what is then wanted":           {have: addrB, want: addrB, last: addrA},
		"nothing wanted":                          {have: addrB, want: none, last: addrA},
		"nothing set in the device":               {have: none, want: addrA, last: addrA, rewrite: true},
		"after a restart, live session":           {have: addrB, want: addrA, handshake: 179 * time.Second},
		"after a restart, no live session":        {have: addrB, want: addrA, handshake: 181 * time.Second, rewrite: true},
		"after a restart, the device has nothing": {have: none, want: addrA, rewrite: true},
	} {
		h := PeerStatus{Underlay: c.have, Handshake: now.Add(-c.handshake)}
		if got := rewrite(h, c.want, c.last, c.last.IsValid(), false, now); got != c.rewrite {
			t.Errorf("%s: rewrite = %v", name, got)
		}
	}
	if !rewrite(PeerStatus{Underlay: addrB}, addrA, none, false, false, now) {
		t.Error("after a restart, never a handshake: no rewrite")
	}
}

func TestDiff(t *testing.T) {
	have := []PeerStatus{status(1, addrA, "10.1.0.0/16"), status(2, addrB, "10.2.0.0/16 10.9.0.0/16"), status(3, addrC, "10.3.0.0/16")}
	set := map[key.Public]netip.AddrPort{{1}: addrA, {2}: addrB, {3}: addrC}
	for name, c := range map[string]struct {
		want   []datapath.Peer
		puts   string
		shed   string
		remove []key.Public
	}{
		"nothing to do": {want: []datapath.Peer{peer(1, addrA, "10.1.0.0/16"), peer(2, addrB, "10.2.0.0/16 10.9.0.0/16"), peer(3, addrC, "10.3.0.0/16")}},
		"move, shed and remove": {
			want:   []datapath.Peer{peer(1, addrA, "10.1.0.0/16 10.3.0.0/16"), peer(2, addrB, "10.2.0.0/16")},
			puts:   "n1 +10.3.0.0/16",
			shed:   "10.9.0.0/16",
			remove: []key.Public{{3}},
		},
		"a moved prefix is not shed": {
			want: []datapath.Peer{peer(1, addrA, "10.1.0.0/16"), peer(2, addrB, "10.2.0.0/16"), peer(3, addrC, "10.3.0.0/16 10.9.0.0/16")},
			puts: "n3 +10.9.0.0/16",
		},
		"create": {
			want:   []datapath.Peer{peer(1, addrA, "10.1.0.0/16"), peer(2, addrB, "10.2.0.0/16 10.9.0.0/16"), peer(4, addrC, "10.3.0.0/16")},
			puts:   "create n4 192.0.2.3:51820 +10.3.0.0/16",
			remove: []key.Public{{3}},
		},
		"new underlay only": {
			want:   []datapath.Peer{peer(1, addrB, "10.1.0.0/16"), peer(2, addrB, "10.2.0.0/16 10.9.0.0/16")},
			puts:   "n1 192.0.2.2:51820",
			remove: []key.Public{{3}},
		},
		"host bits do not matter": {
			want:   []datapath.Peer{peer(1, addrA, "10.1.2.3/16"), peer(2, addrB, "10.2.0.0/16 10.9.0.0/16")},
			remove: []key.Public{{3}},
		},
	} {
		got, problems := diff(have, c.want, set, nil, self, now)
		if len(problems) > 0 || show(got.put) != c.puts || !slices.Equal(got.shed, prefixes(c.shed)) || !slices.Equal(got.remove, c.remove) {
			t.Errorf("%s: put %q shed %v remove %v, %v", name, show(got.put), got.shed, got.remove, problems)
		}
	}
}

func show(puts []put) string {
	var parts []string
	for _, p := range puts {
		if p.create {
			parts = append(parts, "create")
		}
		parts = append(parts, p.Name)
		if p.Underlay.IsValid() {
			parts = append(parts, p.Underlay.String())
		}
		for _, ip := range p.AllowedIPs {
			parts = append(parts, "+"+ip.String())
		}
	}
	return strings.Join(parts, " ")
}

// What no plan contains is left out and named, whatever else is in the plan.
func TestDiffGuards(t *testing.T) {
	good := peer(1, addrA, "10.1.0.0/16")
	for name, c := range map[string]struct {
		bad     datapath.Peer
		message string
		puts    string // of bad
	}{
		"own key":       {datapath.Peer{Name: "twin", Key: self}, "peer twin: its key is missing, this node's own", ""},
		"no key":        {datapath.Peer{Name: "bare"}, "peer bare: its key is missing", ""},
		"the same key":  {datapath.Peer{Name: "copy", Key: good.Key}, "peer copy: its key is missing, this node's own, or the key of peer \"n1\"", ""},
		"taken prefix":  {peer(2, addrB, "10.1.0.0/16 10.2.0.0/16"), "peer n2: its allowed IP 10.1.0.0/16 is invalid or belongs to peer \"n1\"", " create n2 192.0.2.2:51820 +10.2.0.0/16"},
		"invalid":       {datapath.Peer{Name: "n2", Key: key.Public{2}, AllowedIPs: []netip.Prefix{{}}}, "peer n2: its allowed IP invalid Prefix is invalid", " create n2"},
		"nothing wrong": {peer(2, addrB, "10.2.0.0/16"), "", " create n2 192.0.2.2:51820 +10.2.0.0/16"},
	} {
		got, problems := diff(nil, []datapath.Peer{good, c.bad}, nil, nil, self, now)
		if (c.message == "") != (len(problems) == 0) || len(problems) > 0 && !strings.HasPrefix(problems[0].String(), c.message) {
			t.Errorf("%s: Problems %v, want %q", name, problems, c.message)
		}
		if want := "create n1 192.0.2.1:51820 +10.1.0.0/16" + c.puts; show(got.put) != want {
			t.Errorf("%s: put %q, want %q", name, show(got.put), want)
		}
	}
}

// model is a WireGuard device: each prefix has one owner, and a peer that takes it takes it at once.
type model struct {
	underlay map[key.Public]netip.AddrPort
	owner    map[netip.Prefix]key.Public
}

func (m model) status() (have []PeerStatus) {
	for k, u := range m.underlay {
		st := PeerStatus{Key: k, Underlay: u}
		for p, o := range m.owner {
			if o == k {
				st.AllowedIPs = append(st.AllowedIPs, p)
			}
		}
		slices.SortFunc(st.AllowedIPs, netip.Prefix.Compare)
		have = append(have, st)
	}
	return have
}

// apply does what Device.Reconcile does, and calls check after every step.
func (m model) apply(c change, check func()) {
	for _, p := range c.put {
		if p.create {
			m.underlay[p.Key] = netip.AddrPort{}
		}
		if p.Underlay.IsValid() {
			m.underlay[p.Key] = p.Underlay
		}
		for _, ip := range p.AllowedIPs {
			m.owner[ip] = p.Key
			check()
		}
	}
	for _, ip := range c.shed {
		delete(m.owner, ip)
		check()
	}
	for _, k := range c.remove {
		delete(m.underlay, k)
		maps.DeleteFunc(m.owner, func(_ netip.Prefix, o key.Public) bool { return o == k })
		check()
	}
}

// TestDiffProperty: the device ends as wanted; meanwhile no prefix that has an owner before and after is
// without one; and a second diff is empty.
func TestDiffProperty(t *testing.T) {
	pool := prefixes("10.1.0.0/16 10.2.0.0/16 10.3.0.0/16 fd00:1::/64 fd00:2::/64")
	underlays := []netip.AddrPort{addrA, addrB, addrC}
	draw := func(t *rapid.T, label string) (ps []datapath.Peer) {
		owners := map[byte][]netip.Prefix{}
		for _, p := range pool {
			k := rapid.ByteRange(0, 4).Draw(t, label) // 0: no node's
			owners[k] = append(owners[k], p)
		}
		for k := byte(1); k <= 4; k++ {
			if rapid.Bool().Draw(t, label+" exists") {
				ps = append(ps, datapath.Peer{Key: key.Public{k}, Underlay: rapid.SampledFrom(underlays).Draw(t, label), AllowedIPs: owners[k]})
			}
		}
		return ps
	}
	rapid.Check(t, func(t *rapid.T) {
		before, want := draw(t, "have"), draw(t, "want")
		m := model{map[key.Public]netip.AddrPort{}, map[netip.Prefix]key.Public{}}
		first, problems := diff(nil, before, nil, nil, self, now)
		if len(problems) > 0 {
			t.Fatal(problems)
		}
		m.apply(first, func() {})
		set := maps.Clone(m.underlay)
		lasting := map[netip.Prefix]bool{}
		for _, w := range want {
			for _, p := range w.AllowedIPs {
				_, lasting[p] = m.owner[p]
			}
		}
		c, problems := diff(m.status(), want, set, nil, self, now)
		if len(problems) > 0 {
			t.Fatal(problems)
		}
		m.apply(c, func() {
			for p, lasts := range lasting {
				if _, ok := m.owner[p]; lasts && !ok {
					t.Fatalf("%s has no owner meanwhile", p)
				}
			}
		})
		again, problems := diff(m.status(), want, m.underlay, nil, self, now)
		if len(problems) > 0 || len(again.put)+len(again.shed)+len(again.remove) != 0 {
			t.Fatalf("the device is not as wanted: %+v, %v", again, problems)
		}
	})
}

// A peer that roamed keeps its new underlay. One whose underlay another program set, or that does not answer
// where it is thought to be, is looked for at the address in its record.
func TestMisled(t *testing.T) {
	now := time.Unix(1_000_000, 0)
	look := func(s sight, after time.Duration, at netip.AddrPort, received, sent int64) (sight, bool) {
		h := PeerStatus{Underlay: at, Received: received, Sent: sent}
		misled := s.misled(h, now.Add(after))
		return s.look(h, true, now.Add(after)), misled
	}
	first := sight{}.look(PeerStatus{Underlay: addrA, Received: 100, Sent: 100}, false, now)
	for _, c := range []struct {
		name           string
		after          time.Duration
		at             netip.AddrPort
		received, sent int64
		want           bool
	}{
		{"idle", time.Hour, addrA, 100, 100, false},
		{"roamed", time.Second, addrB, 132, 100, false},
		{"another program set it", time.Second, addrB, 100, 100, true},
		{"asked just now", time.Hour, addrA, 100, 200, false},
	} {
		if _, got := look(first, c.after, c.at, c.received, c.sent); got != c.want {
			t.Errorf("%s: misled %v, want %v", c.name, got, c.want)
		}
	}
	asked, _ := look(first, time.Second, addrA, 100, 200)
	if _, got := look(asked, time.Second+unanswered-1, addrA, 100, 300); got {
		t.Error("it had no time to answer")
	}
	if _, got := look(asked, time.Second+unanswered, addrA, 100, 300); !got {
		t.Error("it does not answer, and that is not noticed")
	}
	if _, got := look(asked, time.Hour, addrA, 101, 300); got {
		t.Error("it answers, and is doubted")
	}
}
