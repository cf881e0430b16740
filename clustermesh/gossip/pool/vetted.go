package pool

import (
	"bytes"
	"encoding/binary"
	"errors"
	"io"
	"net"
	"sync"
)

const (
	// freeState is how many bytes each of memberlist's connections may send: the members of a clusterset
	// of some hundred nodes. Of those that send more, up to stateBytes (the members of several thousand
	// nodes), maxLarge may be open of all sources and maxLargePerSource of one; memberlist takes about
	// four times that in memory. maxMembers and maxMembersPerSource bound all of them.
	freeState           = 64 << 10
	stateBytes          = 2 << 20
	maxLarge            = 8
	maxLargePerSource   = 4
	maxMembers          = 64
	maxMembersPerSource = 32
	// stateHead is how long the type and the length of an encrypted message are.
	stateHead = 5
)

// vetted is one of memberlist's connections. memberlist reads one message from each, and takes what
// it contains about itself: how long it is, how many members it has, how often it is compressed;
// some of what can be in it makes it panic. So the whole message is read and decrypted first, and
// given to memberlist only if a daemon can have sent it.
type vetted struct {
	net.Conn
	packets *packets
	// label is set if the message begins with the label, as that of a daemon that opens a connection.
	label bool
	// large is called once, before the rest is read, if the message is larger than freeState.
	large func()
	// refused is called if no daemon can have sent the message; closed when the connection is closed.
	refused, closed func()

	once    sync.Once
	read    bool
	message []byte // what memberlist has not read yet
	err     error
}

// Read implements net.Conn.
func (v *vetted) Read(p []byte) (int, error) {
	if !v.read {
		v.read = true
		v.message, v.err = v.first()
		if errors.Is(v.err, errUnusual) {
			v.refused()
		}
	}
	if v.err != nil {
		return 0, v.err
	}
	if len(v.message) == 0 {
		v.message = nil
		return 0, io.EOF
	}
	n := copy(p, v.message)
	v.message = v.message[n:]
	return n, nil
}

// Close implements net.Conn.
func (v *vetted) Close() error {
	if v.closed != nil {
		v.once.Do(v.closed)
	}
	return v.Conn.Close()
}

// first reads the message, with what comes before it.
func (v *vetted) first() ([]byte, error) {
	before := 0
	if v.label {
		before = len(labelHeader)
	}
	message := make([]byte, before+stateHead)
	if _, err := io.ReadFull(v.Conn, message); err != nil {
		return nil, err
	}
	head := message[before:]
	size := binary.BigEndian.Uint32(head[1:])
	if v.label && !bytes.Equal(message[:before], labelHeader) || head[0] != typeEncrypt || size > stateBytes {
		return nil, errUnusual
	}
	if size > freeState {
		v.large()
	}
	for left := int(size); left > 0; { // memory only as bytes arrive
		n := min(left, freeState)
		message = append(message, make([]byte, n)...)
		if _, err := io.ReadFull(v.Conn, message[len(message)-n:]); err != nil {
			return nil, err
		}
		left -= n
	}
	head, sealed := message[before:before+stateHead], message[before+stateHead:]
	if text, why := v.packets.open(sealed, append(bytes.Clone(head), label...)); why != "" || !usualState(text) {
		return nil, errUnusual
	}
	return message, nil
}
