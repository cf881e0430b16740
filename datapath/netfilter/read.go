package netfilter

import (
	"bytes"
	"errors"
	"fmt"
	"slices"

	"github.com/google/nftables"
	"github.com/google/nftables/userdata"
	"golang.org/x/sys/unix"
)

// installed reads the table from the kernel. It returns nil if there is no table.
func installed() (*content, error) {
	var conn nftables.Conn
	have, err := conn.ListTableOfFamily(tableName, table.Family)
	switch {
	case errors.Is(err, unix.ENOENT):
		return nil, nil
	case err != nil: // nfnetlink returns EINVAL for a subsystem that it lacks
		return nil, fmt.Errorf("read nft table %s: %w", tableName, unsupported(err, unix.EINVAL))
	}
	c := &content{}
	// A part that cannot be read counts as missing, because the remedy is the same: replace the
	// table.
	c.based = have.Flags == 0 && onlyOurs(&conn) // a flag can make the whole table dormant
	for _, ch := range (content{}).chains() {
		have, err := conn.ListChain(table, ch.name)
		if err != nil {
			return &content{}, nil
		}
		c.based = c.based && ch.in(have)
		rules, err := conn.GetRules(table, have)
		if err != nil {
			return &content{}, nil
		}
		for _, r := range rules {
			comment, _ := userdata.GetString(r.UserData, userdata.TypeComment)
			c.rules = append(c.rules, comment)
		}
	}
	for _, f := range families {
		es, err := conn.GetSetElements(&nftables.Set{Table: table, Name: f.set, KeyType: f.key})
		if err != nil {
			return c, nil
		}
		c.pods = append(c.pods, toRanges(es)...)
	}
	return c, nil
}

// onlyOurs reports whether the table has no base chain of another program, which would judge packets too.
// Other chains see no packets.
func onlyOurs(conn *nftables.Conn) bool {
	chains, err := conn.ListChainsOfTableFamily(table.Family)
	if err != nil {
		return false
	}
	count := 0
	for _, ch := range chains {
		if ch.Table.Name == tableName && ch.Hooknum != nil {
			count++
		}
	}
	return count == len((content{}).chains())
}

// sortByKey sorts by address. At the same address, the end of a range comes before a start.
func sortByKey(es []nftables.SetElement) {
	slices.SortFunc(es, func(a, b nftables.SetElement) int {
		if d := bytes.Compare(a.Key, b.Key); d != 0 || a.IntervalEnd == b.IntervalEnd {
			return d
		}
		if a.IntervalEnd {
			return -1
		}
		return 1
	})
}
