package gossip

import (
	"crypto/aes"
	"crypto/cipher"
	"encoding/binary"
	"net"
	"net/netip"
	"slices"
	"testing"
	"time"

	"strait.io/strait/clustermesh"
	"strait.io/strait/clustermesh/gossip/node"
)

// The types of memberlist's messages about members.
const (
	typeSuspect = 3
	typeAlive   = 4
	typeDead    = 5
)

// field is one of a message; its value is a string, bytes or a number.
type field struct {
	name  string
	value any
}

// rumour is a datagram with a message of memberlist's, which every holder of the gossip key can make.
func rumour(t *testing.T, kind byte, fields ...field) []byte {
	t.Helper()
	raw := func(out, b []byte) []byte {
		return append(binary.BigEndian.AppendUint16(append(out, 0xda), uint16(len(b))), b...)
	}
	text := []byte{kind, 0x80 | byte(len(fields))} // msgpack
	for _, f := range fields {
		text = raw(text, []byte(f.name))
		switch v := f.value.(type) {
		case string:
			text = raw(text, []byte(v))
		case []byte:
			text = raw(text, v)
		case uint32:
			text = binary.BigEndian.AppendUint32(append(text, 0xce), v)
		}
	}
	block, err := aes.NewCipher(testKeys[0][:])
	if err != nil {
		t.Fatal(err)
	}
	aead, err := cipher.NewGCM(block)
	if err != nil {
		t.Fatal(err)
	}
	nonce := make([]byte, aead.NonceSize())
	binary.BigEndian.PutUint64(nonce, uint64(time.Now().UnixNano()))
	const label = "strait"
	head := append(append(append([]byte{244, byte(len(label))}, label...), 1), nonce...)
	return aead.Seal(head, nonce, text, []byte(label))
}

// rumours about a member: that it is gone, that it is suspected to be, and that it is at an address.
func dead(t *testing.T, of, from string, incarnation uint32) []byte {
	return rumour(t, typeDead, field{"Incarnation", incarnation}, field{"Node", of}, field{"From", from})
}

func suspected(t *testing.T, of, from string, incarnation uint32) []byte {
	return rumour(t, typeSuspect, field{"Incarnation", incarnation}, field{"Node", of}, field{"From", from})
}

func alive(t *testing.T, of string, at netip.AddrPort, incarnation uint32) []byte {
	ip := at.Addr().As4()
	return rumour(t, typeAlive, field{"Incarnation", incarnation}, field{"Node", of}, field{"Addr", ip[:]},
		field{"Port", uint32(at.Port())}, field{"Meta", ""}, field{"Vsn", []byte{1, 5, 2, 0, 0, 0}})
}

// TestMoved: an attacker with the gossip key says that a member left, and is somewhere else now. With pins, that
// moves nothing: what others say still reaches the node, it is alive, and that address is not probed.
func TestMoved(t *testing.T) {
	t.Parallel()
	const last = 1<<32 - 1
	for what, spread := range map[string]func(t *testing.T, name string, at netip.AddrPort, n uint32) [][]byte{
		"it left, and is there now": func(t *testing.T, name string, at netip.AddrPort, n uint32) [][]byte {
			return [][]byte{dead(t, name, name, 2*n), alive(t, name, at, 2*n+1)}
		},
		"it is gone for good": func(t *testing.T, name string, _ netip.AddrPort, _ uint32) [][]byte {
			return [][]byte{dead(t, name, "west/n9/1", last)}
		},
		"it is suspected for good": func(t *testing.T, name string, _ netip.AddrPort, _ uint32) [][]byte {
			return [][]byte{suspected(t, name, "west/n9/1", last)}
		},
		"a later life of it is there": func(t *testing.T, name string, at netip.AddrPort, n uint32) [][]byte {
			return [][]byte{alive(t, name[:len(name)-1]+"zz", at, n)}
		},
	} {
		t.Run(what, func(t *testing.T) {
			t.Parallel()
			move(t, spread)
		})
	}
}

func move(t *testing.T, spread func(t *testing.T, name string, at netip.AddrPort, n uint32) [][]byte) {
	pins := pinned("west", "east")
	for c, p := range pins {
		p.Nodes = []netip.Prefix{testNet}
		pins[c] = p
	}
	west := signing(config(origin("west", "n1")), pins)
	east := signing(config(origin("east", "n1"), west.Bind), pins)
	dw, de := start(t, west), start(t, east)
	tells := func(d *daemon, n byte, number string) {
		c := placed(d.cfg.Self, n, number)
		c.Node.Addresses, c.Node.GossipPort = []netip.Addr{d.cfg.Bind.Addr()}, d.cfg.Bind.Port()
		d.Publish(c)
	}
	tells(dw, 0, "1")
	tells(de, 1, "2")
	eventually(t, "they hear each other", func() bool {
		return dw.contact(east.Self) == clustermesh.Alive && de.contact(west.Self) == clustermesh.Alive && dw.said(east.Self) == 2 && de.said(west.Self) == 1
	})

	trap := testAddr()
	listenSilently(t, trap)
	for n := range uint32(60) {
		for _, b := range spread(t, de.self.ID.String(), trap, n+1) {
			throw(t, b, west.Bind)
		}
		if c := dw.contact(east.Self); c != clustermesh.Alive {
			t.Fatalf("the node is %v", c)
		}
		time.Sleep(50 * time.Millisecond)
	}
	tells(dw, 0, "3")
	eventually(t, "what is said reaches the node", func() bool { return de.said(west.Self) == 3 })
	var probed []netip.AddrPort
	dw.do(func(n *node.Node, _ time.Time) {
		probed = n.Contacts().ProbeAddrs(east.Self, n.State().Records.Get(east.Self))
	})
	if slices.Contains(probed, trap) || !slices.Contains(probed, east.Bind) {
		t.Errorf("probed are %v", probed)
	}
	if at := dw.State().Proven.Get(east.Self); at != east.Bind {
		t.Errorf("it proved who it is at %s, not %s", at, east.Bind)
	}
	de.stop()
	eventually(t, "the node is gone", func() bool { return dw.contact(east.Self) != clustermesh.Alive })
}

// listenSilently accepts connections at an address, and says nothing.
func listenSilently(t *testing.T, at netip.AddrPort) {
	t.Helper()
	l, err := net.Listen("tcp", at.String())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { l.Close() })
	go func() {
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			defer c.Close()
		}
	}()
}
