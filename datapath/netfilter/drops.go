package netfilter

import (
	"errors"
	"fmt"
	"strings"

	"github.com/google/nftables"
	"github.com/google/nftables/expr"
	"github.com/google/nftables/userdata"
	"golang.org/x/sys/unix"
)

// Drops counts packets that came out of the tunnel and were dropped, since the table was last
// written.
type Drops struct {
	// Untracked are of no connection that the kernel tracks. Some may be answers to the node.
	Untracked uint64
	// Refused are all others.
	Refused uint64
}

// Drops reads the counters of the table. Without a table they are 0.
func (t *Table) Drops() (out Drops, err error) {
	t.mu.Lock() // the table is not being replaced
	defer t.mu.Unlock()
	var conn nftables.Conn
	for _, name := range []string{filterInput, filterForward} {
		rules, err := conn.GetRules(table, &nftables.Chain{Name: name, Table: table})
		if errors.Is(err, unix.ENOENT) {
			continue
		}
		if err != nil {
			return Drops{}, fmt.Errorf("read counters of nft table %s: %w", tableName, unsupported(err, unix.EINVAL))
		}
		for _, r := range rules {
			comment, _ := userdata.GetString(r.UserData, userdata.TypeComment)
			for _, e := range r.Exprs {
				switch n, is := e.(*expr.Counter); {
				case !is:
				case strings.HasSuffix(comment, untracked):
					out.Untracked += n.Packets
				default:
					out.Refused += n.Packets
				}
			}
		}
	}
	return out, nil
}
