package member

// Refusal is why something that came to the port was refused. The texts are those of a metric's
// label.
type Refusal string

const (
	// NotTLS: a TCP connection that is not TLS.
	NotTLS Refusal = "not_tls"
	// Unproven: a TCP connection whose peer did not prove in time that it has the gossip key.
	Unproven Refusal = "unproven"
	// Crowded: a TCP connection that had to go before its peer proved anything, for want of room.
	Crowded Refusal = "crowded"
	// NotOurs: a datagram without strait's label. OtherKey: one that the gossip key cannot decrypt.
	NotOurs  Refusal = "datagram"
	OtherKey Refusal = "datagram_key"
	// TooMany: a member for which there is no room. Its address is the one that it claims.
	TooMany Refusal = "member"
	// Unusual: a message that no daemon of strait sends, from a peer that has the gossip key.
	Unusual Refusal = "message"
	// TooFast: a datagram beyond what all daemons together can have to send in a second, or one that would
	// leave this machine for an address that is no member's.
	TooFast Refusal = "rate"
)

// Refusals are all there are.
var Refusals = []Refusal{NotTLS, Unproven, Crowded, NotOurs, OtherKey, TooMany, Unusual, TooFast}
