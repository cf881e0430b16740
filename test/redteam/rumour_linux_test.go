package redteam

import (
	"encoding/binary"
	"net/netip"
)

// The types of memberlist's messages.
const (
	typeSuspect  = 3
	typeAlive    = 4
	typeDead     = 5
	typePushPull = 6
	typeCompound = 7
	typeCompress = 9
)

// last is the highest incarnation of a member, above which its daemon cannot go.
const last = 1<<32 - 1

// field is one of a message; its value is a string, bytes, a bool or a number.
type field struct {
	name  string
	value any
}

// fields writes them as MessagePack, as memberlist does.
func fields(all ...field) []byte {
	out := []byte{0x80 | byte(len(all))}
	long := func(b string) { out = append(binary.BigEndian.AppendUint16(append(out, 0xda), uint16(len(b))), b...) }
	for _, f := range all {
		out = append(append(out, 0xa0|byte(len(f.name))), f.name...)
		switch v := f.value.(type) {
		case string:
			long(v)
		case []byte:
			long(string(v))
		case bool:
			out = append(out, map[bool]byte{false: 0xc2, true: 0xc3}[v])
		case int:
			out = binary.BigEndian.AppendUint32(append(out, 0xce), uint32(v))
		}
	}
	return out
}

// versions are those of memberlist's protocols.
var versions = []byte{1, 5, 2, 0, 0, 0}

// isDead says that a member is gone; if it is from the member itself, that it left.
func isDead(of, from string, incarnation int) []byte {
	return append([]byte{typeDead}, fields(field{"Incarnation", incarnation}, field{"Node", of}, field{"From", from})...)
}

// isSuspected says that a member does not answer.
func isSuspected(of, from string, incarnation int) []byte {
	return append([]byte{typeSuspect}, isDead(of, from, incarnation)[1:]...)
}

// isAt says that a member is alive, and where.
func isAt(of string, at netip.AddrPort, uid string, incarnation int) []byte {
	ip := at.Addr().As4()
	return append([]byte{typeAlive}, fields(field{"Incarnation", incarnation}, field{"Node", of}, field{"Addr", ip[:]},
		field{"Port", int(at.Port())}, field{"Meta", uid}, field{"Vsn", versions})...)
}

// The states of a member in a state that daemons exchange.
const (
	stateAlive = 0
	stateLeft  = 3
)

// members says how a member is and where, as daemons exchange it on connections.
func members(of string, at netip.AddrPort, incarnation int, states ...int) []byte {
	ip := at.Addr().As4()
	out := append([]byte{typePushPull}, fields(field{"Nodes", len(states)}, field{"UserStateLen", 0}, field{"Join", false})...)
	for i, s := range states {
		out = append(out, fields(field{"Name", of}, field{"Addr", ip[:]}, field{"Port", int(at.Port())}, field{"Meta", ""},
			field{"Incarnation", incarnation + i}, field{"State", s}, field{"Vsn", versions})...)
	}
	return out
}
