package wireguard

import (
	"errors"
	"net/netip"
	"slices"
	"strings"
	"testing"

	"golang.zx2c4.com/wireguard/wgctrl/wgtypes"

	"strait.io/strait/datapath"
	"strait.io/strait/internal/key"
)

// stubborn is a device that refuses some peers and some allowed IPs, and a configuration that has
// one of them as a whole.
type stubborn struct {
	peers   map[key.Public][]string // in force
	refuses map[key.Public]bool
	refused string // an allowed IP
	removed []key.Public
	dead    bool
}

var errRefused = errors.New("invalid argument")

func (s *stubborn) read() (state, error) {
	if s.dead {
		return state{}, errors.New("no such device")
	}
	var st state
	for k, ips := range s.peers {
		st.peers = append(st.peers, PeerStatus{Key: k, AllowedIPs: prefixes(strings.Join(ips, " "))})
	}
	return st, nil
}

func (s *stubborn) configure(cfg wgtypes.Config) error {
	if s.dead {
		return errors.New("no such device")
	}
	for _, p := range cfg.Peers {
		if s.refuses[key.Public(p.PublicKey)] {
			return errRefused
		}
		for _, ip := range p.AllowedIPs {
			if ip.String() == s.refused {
				return errRefused
			}
		}
	}
	for _, p := range cfg.Peers {
		k := key.Public(p.PublicKey)
		if p.Remove {
			delete(s.peers, k)
			s.removed = append(s.removed, k)
			continue
		}
		ips := s.peers[k]
		for _, ip := range p.AllowedIPs {
			ips = append(ips, ip.String())
		}
		s.peers[k] = ips
	}
	return nil
}

func (s *stubborn) close() error { return nil }

// noLinks is a link that is always up.
type noLinks struct{}

func (noLinks) Claim(string) error                    { return nil }
func (noLinks) AddWireGuard(string) error             { return nil }
func (noLinks) SetUp(string, int, netip.Prefix) error { return nil }

func stubbornDevice(s *stubborn) *Device {
	s.peers = map[key.Public][]string{{9}: {"10.9.0.0/16"}}
	return &Device{cfg: Config{}.withDefaults(), links: noLinks{}, client: s, set: map[key.Public]netip.AddrPort{}}
}

// A peer and an allowed IP that the device refuses are Problems of their own; the others come, and
// what is unwanted goes.
func TestRefusedPeersStopNothing(t *testing.T) {
	s := &stubborn{refuses: map[key.Public]bool{{2}: true}, refused: "10.3.1.0/24"}
	d := stubbornDevice(s)
	problems, err := d.Reconcile([]datapath.Peer{
		peer(1, addrA, "10.1.0.0/16"), peer(2, addrB, "10.2.0.0/16"), peer(3, addrC, "10.3.1.0/24 10.3.2.0/24"),
	}, true)
	if err != nil {
		t.Fatalf("a refused peer is an error of the device: %v", err)
	}
	var names []string
	for _, p := range problems {
		names = append(names, p.Object+" "+p.Field)
		if p.Try == "" || !strings.Contains(p.Message, errRefused.Error()) {
			t.Errorf("%+v does not say why, and what to do", p)
		}
	}
	if want := []string{"peer n2 ", "peer n3 prefixes"}; !slices.Equal(names, want) {
		t.Errorf("Problems %q, want %q", names, want)
	}
	if one, three := s.peers[key.Public{1}], s.peers[key.Public{3}]; !slices.Equal(one, []string{"10.1.0.0/16"}) || !slices.Equal(three, []string{"10.3.2.0/24"}) {
		t.Errorf("in force for n1 is %v, for n3 %v", one, three)
	}
	if !slices.Contains(s.removed, key.Public{9}) {
		t.Error("the unwanted peer stays")
	}
}

// A device that does not answer any more has nothing against the peers.
func TestDeadDeviceIsAnError(t *testing.T) {
	s := &stubborn{}
	d := stubbornDevice(s)
	s.dead = true
	problems, err := d.put([]put{{Peer: peer(1, addrA, "10.1.0.0/16"), create: true}})
	if err == nil || len(problems) > 0 {
		t.Errorf("Problems %v, error %v", problems, err)
	}
}
