package pool

import (
	"encoding/binary"
	"errors"
)

// The types of memberlist's messages that matter here.
const (
	typePing     = 0
	typePushPull = 6
	typeCompound = 7
	typeUser     = 8
	typeCompress = 9
	typeEncrypt  = 10
	typeCRC      = 12
	typeError    = 13
)

// maxText is more than the text of any datagram of a daemon has, in bytes: memberlist fills 1400.
const maxText = 2 << 10

// plainVersion marks a text that was not padded before it was encrypted. Daemons send no other.
const plainVersion = 1

// usual returns how many messages the text of a datagram has; 0 if no daemon sends such a text.
// memberlist unpacks compressed messages, and messages in messages, without end: one datagram of 64 KiB
// can hold millions. Daemons neither compress nor nest, and have no messages of their own in datagrams.
// What this version does not know is passed on: memberlist ignores it.
func usual(text []byte) (messages int) {
	if len(text) > maxText {
		return 0
	}
	if len(text) >= 5 && text[0] == typeCRC {
		text = text[5:]
	}
	switch {
	case len(text) == 0:
		return 0
	case text[0] == typeCompound:
		return usualParts(text[1:])
	case single(text[0]):
		return 1
	}
	return 0
}

// single reports whether a type is that of one message, which may come in a datagram.
func single(t byte) bool {
	switch t {
	case typePushPull, typeCompound, typeUser, typeCompress, typeEncrypt, typeCRC, typeError:
		return false
	}
	return true
}

// usualParts is usual for what follows the type of a compound message: the number of parts, their
// lengths, and the parts.
func usualParts(b []byte) (parts int) {
	if len(b) == 0 {
		return 0
	}
	n := int(b[0])
	if len(b) < 1+2*n {
		return 0
	}
	lengths, rest := b[1:1+2*n], b[1+2*n:]
	for ; len(lengths) > 0; lengths = lengths[2:] {
		size := int(binary.BigEndian.Uint16(lengths))
		if size == 0 || size > len(rest) || !single(rest[0]) {
			return 0
		}
		rest = rest[size:]
	}
	if len(rest) > 0 {
		return 0
	}
	return n
}

// errUnusual ends one of memberlist's connections.
var errUnusual = errors.New("the peer sends what no daemon of strait sends")

// smallestState is less than memberlist takes to write one member, in bytes: the names of the fields
// alone take 42.
const smallestState = 42

// usualState reports whether a daemon can have sent the text of a message on one of memberlist's
// connections: a ping, an answer, or its members. memberlist makes room for as many members as the
// message announces, before it has any, and for 20 MiB of user data, of which strait has none.
func usualState(text []byte) bool {
	if len(text) == 0 {
		return false
	}
	if text[0] != typePushPull {
		return single(text[0]) || text[0] == typeError
	}
	nodes, user, ok := stateHeader(text[1:])
	return ok && user == 0 && nodes >= 0 && nodes <= len(text)/smallestState
}

// stateHeader reads how many members, and bytes of user data, a message announces. The header is a
// MessagePack map of two numbers and a bool, in any order.
func stateHeader(b []byte) (nodes, user int, ok bool) {
	if len(b) == 0 || b[0]&0xf0 != 0x80 { // a map of up to 15 pairs
		return 0, 0, false
	}
	pairs := int(b[0] & 0x0f)
	b = b[1:]
	for range pairs {
		if len(b) == 0 || b[0]&0xe0 != 0xa0 || len(b) < 1+int(b[0]&0x1f) { // a text of up to 31 bytes
			return 0, 0, false
		}
		name := string(b[1 : 1+int(b[0]&0x1f)])
		var value int
		if value, b, ok = headerValue(b[1+len(name):]); !ok {
			return 0, 0, false
		}
		switch name {
		case "Nodes":
			nodes = value
		case "UserStateLen":
			user = value
		case "Join":
		default:
			return 0, 0, false
		}
	}
	return nodes, user, true
}

// headerValue reads a number that is not negative, or a bool.
func headerValue(b []byte) (value int, rest []byte, ok bool) {
	if len(b) == 0 {
		return 0, nil, false
	}
	kind, b := b[0], b[1:]
	switch {
	case kind < 0x80:
		return int(kind), b, true
	case kind == 0xc2 || kind == 0xc3: // false, true
		return int(kind & 1), b, true
	case (kind == 0xcc || kind == 0xd0) && len(b) >= 1 && (kind == 0xcc || b[0] < 0x80):
		return int(b[0]), b[1:], true
	case (kind == 0xcd || kind == 0xd1) && len(b) >= 2 && (kind == 0xcd || b[0] < 0x80):
		return int(binary.BigEndian.Uint16(b)), b[2:], true
	case (kind == 0xce || kind == 0xd2) && len(b) >= 4 && b[0] < 0x80:
		return int(binary.BigEndian.Uint32(b)), b[4:], true
	}
	return 0, nil, false // a larger number is more than any daemon announces
}
