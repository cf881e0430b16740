package clustermesh

import (
	"cmp"
	"strings"
	"time"
)

// Withdrawal makes statements about a node void that its cluster does not stand by any more.
type Withdrawal struct {
	Node NodeName `cbor:"1,keyasint" json:"node"`
	// Below is the first serial that counts.
	Below uint64 `cbor:"2,keyasint" json:"below"`
	// From is when it comes into force, in Unix seconds. Until then, the node can get a new statement.
	From int64 `cbor:"3,keyasint" json:"from"`
}

// InForce reports whether the statements are void at a time.
func (w Withdrawal) InForce(now time.Time) bool { return w.From <= now.Unix() }

// Compare orders withdrawals by node, and those of one node by serial.
func (w Withdrawal) Compare(v Withdrawal) int {
	return cmp.Or(strings.Compare(string(w.Node), string(v.Node)), cmp.Compare(w.Below, v.Below))
}
