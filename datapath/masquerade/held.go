package masquerade

import (
	"bytes"
	"errors"
	"fmt"
	"slices"

	"github.com/google/nftables"
	"github.com/google/nftables/userdata"
	"golang.org/x/sys/unix"
)

// held reads the table; nil if there is none.
func held() (*content, error) {
	var conn nftables.Conn
	_, err := conn.ListTableOfFamily(tableName, table.Family)
	switch {
	case errors.Is(err, unix.ENOENT):
		return nil, nil
	case err != nil: // nfnetlink says EINVAL to a question for a part that it does not have
		return nil, fmt.Errorf("read nft table %s: %w", tableName, unsupported(err, unix.EINVAL))
	}
	c := &content{}
	// What cannot be read is as good as not there: to put it anew is the answer to both.
	chain, err := conn.ListChain(table, chainName)
	if err != nil {
		return c, nil
	}
	c.based = chain.Type == nftables.ChainTypeNAT && chain.Hooknum != nil && *chain.Hooknum == *nftables.ChainHookPostrouting &&
		chain.Priority != nil && *chain.Priority == priority
	rules, err := conn.GetRules(table, chain)
	if err != nil {
		return c, nil
	}
	for _, r := range rules {
		comment, _ := userdata.GetString(r.UserData, userdata.TypeComment)
		c.rules = append(c.rules, comment)
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

// sortByKey orders by address; an end before a start.
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
