package socklb

import (
	"encoding/binary"
	"fmt"
	"iter"
	"net/netip"
	"slices"
	"sync/atomic"

	"github.com/cilium/ebpf"
	"golang.org/x/sys/unix"

	"strait.io/strait/datapath/socklb/layout"
)

// sieve is the programs' map of the addresses that can be strait's; see struct
// address_sieve in ../../bpf/lib/types.h. An address must be marked before a program can find
// anything under it, and may lose its mark only afterwards.
type sieve struct{ *layout.AddressSieve }

// viewSieve maps the sieve into memory; the view is valid until v is closed.
func viewSieve(v *layout.Views, m *ebpf.Map) (sieve, error) {
	one, err := layout.View[layout.AddressSieve](v, m, unix.PROT_READ|unix.PROT_WRITE)
	if err != nil {
		return sieve{}, err
	}
	return sieve{&one[0]}, nil
}

// sieveHash and sieveHashBits are SIEVE_HASH and ADDRESS_HASH_BITS of the programs.
const (
	sieveHash     = 0x9e3779b97f4a7c15
	sieveHashBits = 17
)

// place returns where the mark of an address is.
func place(a netip.Addr) (word int, bit uint64) {
	hi, lo := halves(a.As16())
	n := (hi + lo) * sieveHash >> (64 - sieveHashBits)
	return int(n / 64), 1 << (n % 64)
}

func halves(b [16]byte) (hi, lo uint64) {
	return binary.LittleEndian.Uint64(b[:8]), binary.LittleEndian.Uint64(b[8:])
}

func (s sieve) mark(a netip.Addr) {
	word, bit := place(a)
	atomic.OrUint64(&s.Bits[word], bit)
}

// keep leaves the marks of these addresses and no other. It reports whether one of them was missing.
func (s sieve) keep(all iter.Seq[netip.Addr]) (missing bool) {
	var want [len(s.Bits)]uint64
	for a := range all {
		word, bit := place(a)
		want[word] |= bit
	}
	for i := range want {
		if s.Bits[i] != want[i] {
			missing = missing || want[i]&^s.Bits[i] != 0
			atomic.StoreUint64(&s.Bits[i], want[i])
		}
	}
	return missing
}

// prefixes returns the ranges that are in force.
func (s sieve) prefixes() (out []netip.Prefix) {
	for _, r := range s.Range[:min(s.Ranges, uint32(len(s.Range)))] {
		out = append(out, prefixOf(r))
	}
	return out
}

// has reports whether exactly these ranges are in force.
func (s sieve) has(want []netip.Prefix) bool {
	return int(s.Ranges) == len(want) && slices.EqualFunc(s.Range[:len(want)], want, func(r layout.Range, p netip.Prefix) bool { return r == rangeOf(p) })
}

// setPrefixes changes the ranges. A program never sees half of a range: there is a moment without
// ranges in between, when a port without a frontend is not refused.
func (s sieve) setPrefixes(want []netip.Prefix, grace func() error) error {
	if len(want) > len(s.Range) {
		return fmt.Errorf("%d ranges of addresses, but there is room for %d", len(want), len(s.Range))
	}
	atomic.StoreUint32(&s.Ranges, 0)
	if err := grace(); err != nil {
		return err
	}
	for i, p := range want {
		s.Range[i] = rangeOf(p)
	}
	atomic.StoreUint32(&s.Ranges, uint32(len(want)))
	return nil
}

// rangeOf returns the addresses of a prefix as the programs compare them; prefixOf is its inverse.
func rangeOf(p netip.Prefix) (r layout.Range) {
	p = p.Masked()
	var mask [16]byte
	for i := range bitsOf(p) {
		mask[i/8] |= 0x80 >> (i % 8)
	}
	r.Net[0], r.Net[1] = halves(p.Addr().As16())
	r.Mask[0], r.Mask[1] = halves(mask)
	return r
}

func prefixOf(r layout.Range) netip.Prefix {
	var net, mask [16]byte
	for i, half := range r.Net {
		binary.LittleEndian.PutUint64(net[8*i:], half)
		binary.LittleEndian.PutUint64(mask[8*i:], r.Mask[i])
	}
	bits := 0
	for bits < 128 && mask[bits/8]<<(bits%8)&0x80 != 0 {
		bits++
	}
	a := netip.AddrFrom16(net)
	if a.Is4In6() && bits >= 96 {
		a, bits = a.Unmap(), bits-96
	}
	return netip.PrefixFrom(a, bits)
}

// bitsOf returns how many bits of the 16-byte form of an address a prefix fixes.
func bitsOf(p netip.Prefix) int {
	if p.Addr().Is4() {
		return 96 + p.Bits()
	}
	return p.Bits()
}
