package route

import (
	"fmt"
	"strings"

	"github.com/vishvananda/netlink"

	"strait.io/strait/internal/problem"
)

// maxOthers is how many routes of others are named.
const maxOthers = 3

// reportOthers adds a Problem if strait's table has routes that are not strait's. They are left
// alone, because the table may be another program's too.
func (c Config) reportOthers(v *verdicts) error {
	h, err := open()
	if err != nil {
		return err
	}
	defer h.Close()
	if err := h.SetStrictCheck(true); err != nil {
		return fmt.Errorf("set strict checking on netlink socket: %w", err)
	}
	var others []string
	err = list(h, &netlink.Route{Table: c.Table}, netlink.RT_FILTER_TABLE, func(r netlink.Route, family int) {
		if r.Protocol != Protocol {
			others = append(others, fmt.Sprintf("%s (proto %s)", toPrefix(r.Dst, family), r.Protocol))
		}
	})
	if err != nil || len(others) == 0 {
		return err
	}
	named := strings.Join(others[:min(len(others), maxOthers)], ", ")
	if more := len(others) - maxOthers; more > 0 {
		named += fmt.Sprintf(" and %d more", more)
	}
	v.problems = append(v.problems, problem.Named("routing table", fmt.Sprint(c.Table)).Problem(problem.Problem{
		Code: problem.RouteForeign, Field: "mesh.table", Warning: true,
		Message: "has routes of another program: " + named + "; packets to pods of other clusters can take them instead of the tunnel",
		Try:     fmt.Sprintf("remove them (ip route show table %d), or configure another table", c.Table),
	}))
	return nil
}
