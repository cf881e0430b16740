package sockdestroy

import (
	"encoding/binary"
	"errors"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"strait.io/strait/internal/l4"
)

// netlink makes a message of body.
func netlink(kind uint16, body []byte) []byte {
	b := binary.NativeEndian.AppendUint32(nil, uint32(unix.SizeofNlMsghdr+len(body)))
	b = binary.NativeEndian.AppendUint16(b, kind)
	b = append(b, make([]byte, unix.SizeofNlMsghdr-6)...)
	b = append(b, body...)
	return append(b, make([]byte, -len(b)&3)...)
}

// answer is a struct inet_diag_msg, with an attribute after it.
func answer(family uint8, dst []byte) []byte {
	b := make([]byte, sizeofSocket+5)
	b[0] = family
	binary.BigEndian.PutUint16(b[4+2:], 5300)
	copy(b[4+20:], dst)
	binary.NativeEndian.PutUint64(b[4+40:], 0x1_0000_0002)
	return b
}

func TestParse(t *testing.T) {
	mapped := []byte{10: 0xff, 11: 0xff, 12: 127, 13: 0, 14: 0, 15: 2}
	b := append(netlink(unix.SOCK_DIAG_BY_FAMILY, answer(unix.AF_INET, []byte{127, 0, 0, 2})),
		netlink(unix.SOCK_DIAG_BY_FAMILY, answer(unix.AF_INET6, mapped))...)
	var got []diagSocket
	done, err := parse(b, func(s diagSocket) { got = append(got, s) })
	if done || err != nil || len(got) != 2 {
		t.Fatalf("got %v, done %v, error %v", got, done, err)
	}
	for _, s := range got {
		if s.peer().String() != "127.0.0.2:5300" || s.id.cookie() != 0x1_0000_0002 {
			t.Errorf("got peer %v, cookie %x", s.peer(), s.id.cookie())
		}
	}
	if done, err := parse(netlink(unix.NLMSG_DONE, make([]byte, 4)), nil); !done || err != nil {
		t.Errorf("done: got %v, %v", done, err)
	}
	denied := binary.NativeEndian.AppendUint32(nil, ^uint32(unix.EPERM)+1)
	if done, err := parse(netlink(unix.NLMSG_ERROR, denied), nil); !done || !errors.Is(err, unix.EPERM) {
		t.Errorf("error: got %v, %v", done, err)
	}
	if _, err := parse(netlink(unix.SOCK_DIAG_BY_FAMILY, make([]byte, 8)), nil); err == nil {
		t.Error("a message that is too short is accepted")
	}
}

// attribute makes one attribute of an answer.
func attribute(kind uint16, value []byte) []byte {
	b := binary.NativeEndian.AppendUint16(nil, uint16(unix.SizeofNlAttr+len(value)))
	b = append(binary.NativeEndian.AppendUint16(b, kind), value...)
	return append(b, make([]byte, -len(b)&3)...)
}

// TestSocketAttributes: what the kernel adds to a socket is read, and what is missing or cut off is
// unknown, not zero.
func TestSocketAttributes(t *testing.T) {
	info := make([]byte, 248)
	binary.NativeEndian.PutUint32(info[68:], 1500)
	binary.NativeEndian.PutUint64(info[128:], 70)
	binary.NativeEndian.PutUint64(info[200:], 12)
	binary.NativeEndian.PutUint64(info[208:], 2)
	cgroup := binary.NativeEndian.AppendUint64(nil, 4711)
	full := append(attribute(attrCgroup, cgroup), attribute(attrInfo, info)...)
	tcp := TCP{Sent: 10, Received: 70, RTT: 1500 * time.Microsecond}
	for _, c := range []struct {
		name       string
		proto      l4.Proto
		state      uint8
		attributes []byte
		cgroup     uint64
		tcp        *TCP
	}{
		{"all", l4.TCP, 1, full, 4711, &tcp},
		{"the peer has closed", l4.TCP, stateCloseWait, full, 4711, &TCP{Sent: 10, Received: 69, RTT: tcp.RTT}},
		{"UDP has no bytes", l4.UDP, 1, full, 4711, nil},
		{"none", l4.TCP, 1, nil, 0, nil},
		{"an older tcp_info", l4.TCP, 1, attribute(attrInfo, info[:192]), 0, nil},
		{"cut off", l4.TCP, 1, full[:len(full)-8], 4711, nil},
		{"a length of zero", l4.TCP, 1, make([]byte, 16), 0, nil},
	} {
		s := diagSocket{family: unix.AF_INET, state: c.state, inode: 9, attributes: c.attributes}
		got := s.socket(c.proto)
		if got.Inode != 9 || got.Cgroup != c.cgroup || (got.TCP == nil) != (c.tcp == nil) || c.tcp != nil && *got.TCP != *c.tcp {
			t.Errorf("%s: got %+v, %+v", c.name, got, got.TCP)
		}
	}
}

func TestRequestSize(t *testing.T) {
	b := diagRequest{family: unix.AF_INET, proto: l4.UDP}.message(unix.SOCK_DESTROY, unix.NLM_F_ACK)
	if len(b) != 72 || binary.NativeEndian.Uint32(b) != 72 {
		t.Errorf("got %d bytes, and %d in the header; want 72", len(b), binary.NativeEndian.Uint32(b))
	}
}

func FuzzParse(f *testing.F) {
	f.Add(netlink(unix.NLMSG_DONE, make([]byte, 4)))
	f.Add(netlink(unix.SOCK_DIAG_BY_FAMILY, answer(unix.AF_INET, []byte{127, 0, 0, 2})))
	f.Fuzz(func(t *testing.T, b []byte) {
		_, _ = parse(b, func(s diagSocket) { s.peer(); s.id.cookie(); s.socket(l4.TCP) }) // it must end, and not panic
	})
}
