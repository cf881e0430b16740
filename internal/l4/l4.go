// Package l4 is strait's one representation of "an address, a port and a protocol".
//
// Pure leaf: it knows no Kubernetes, no kernel and no other package of strait.
package l4

import (
	"cmp"
	"fmt"
	"net/netip"
	"strings"
)

// Proto is an IP protocol number (IANA "Protocol Numbers").
type Proto uint8

// The protocols that a Kubernetes Service can name.
const (
	TCP  Proto = 6
	UDP  Proto = 17
	SCTP Proto = 132
)

// ParseProto reads "TCP", "UDP" or "SCTP"; the empty string is TCP, as in a Kubernetes port.
func ParseProto(s string) (Proto, error) {
	switch strings.ToUpper(s) {
	case "", "TCP":
		return TCP, nil
	case "UDP":
		return UDP, nil
	case "SCTP":
		return SCTP, nil
	}
	return 0, fmt.Errorf("protocol %q is none of TCP, UDP, SCTP", s)
}

func (p Proto) String() string {
	switch p {
	case TCP:
		return "TCP"
	case UDP:
		return "UDP"
	case SCTP:
		return "SCTP"
	}
	return fmt.Sprintf("proto-%d", uint8(p))
}

// Balanced reports whether there is socket load balancing for a protocol.
func (p Proto) Balanced() bool { return p == TCP || p == UDP }

// MarshalText encodes a Proto as its name in JSON and YAML.
func (p Proto) MarshalText() ([]byte, error) { return []byte(p.String()), nil }

// UnmarshalText is the inverse of MarshalText.
func (p *Proto) UnmarshalText(b []byte) (err error) {
	*p, err = ParseProto(string(b))
	return err
}

// Addr is what a client connects to. IP is never v4-mapped; compare with ==.
type Addr struct {
	IP    netip.Addr
	Port  uint16
	Proto Proto
}

// New returns an Addr. It unmaps a v4-mapped IP, so that == works.
func New(ip netip.Addr, port uint16, proto Proto) Addr {
	return Addr{IP: ip.Unmap(), Port: port, Proto: proto}
}

// Parse reads the format that String writes: "10.0.0.1:80/TCP" or "[fd00::1]:53/UDP".
func Parse(s string) (Addr, error) {
	host, proto, _ := strings.Cut(s, "/")
	ap, err := netip.ParseAddrPort(host)
	if err != nil {
		return Addr{}, fmt.Errorf("address %q: want ADDRESS:PORT/PROTOCOL: %w", s, err)
	}
	p, err := ParseProto(proto)
	if err != nil {
		return Addr{}, fmt.Errorf("address %q: %w", s, err)
	}
	return New(ap.Addr(), ap.Port(), p), nil
}

func (a Addr) String() string {
	return netip.AddrPortFrom(a.IP, a.Port).String() + "/" + a.Proto.String()
}

// Compare orders by IP, then port, then protocol.
func (a Addr) Compare(b Addr) int {
	return cmp.Or(a.IP.Compare(b.IP), cmp.Compare(a.Port, b.Port), cmp.Compare(a.Proto, b.Proto))
}

// MarshalText encodes an Addr in the format of String in JSON and YAML.
func (a Addr) MarshalText() ([]byte, error) { return []byte(a.String()), nil }

// UnmarshalText is the inverse of MarshalText.
func (a *Addr) UnmarshalText(b []byte) (err error) {
	*a, err = Parse(string(b))
	return err
}
