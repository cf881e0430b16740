package hostile

import (
	"fmt"
	"net/netip"
	"time"

	"strait.io/strait/clustermesh"
	"strait.io/strait/clustermesh/gossip/member"
)

// somebodys reports whether a cluster can have an endpoint at an address.
func (c *Case) somebodys(a netip.Addr) bool {
	for _, p := range c.pins {
		if in(p.Pods, a) || in(p.Nodes, a) {
			return true
		}
	}
	return false
}

// crowd has a holder of the gossip key invent members, and make known ones come and go.
func (c *Case) crowd() error {
	r := member.NewRoom(5000)
	quotas, known := map[clustermesh.ClusterName]int{}, map[clustermesh.Origin]bool{}
	for _, cluster := range clusters {
		quotas[cluster] = 4
		for n := 1; n <= 3; n++ {
			known[origin(cluster, n)] = true
		}
	}
	r.SetQuotas(quotas)
	r.Know(known)
	now, seated := began, map[member.ID]bool{}
	rounds := 30 + c.IntN(200)
	if c.chance(20) {
		rounds = 4000
	}
	for range rounds {
		o := clustermesh.Origin{Cluster: one(c, west, east, evil, "", "mallory", clustermesh.ClusterName(fmt.Sprint("m", c.IntN(1<<20)))), Node: c.anyName()}
		id := member.ID{Origin: o, Boot: c.Uint64N(1 << 20)}
		switch c.IntN(6) {
		case 0:
			r.Left(id, now)
		case 1:
			now = now.Add(time.Duration(c.IntN(100)) * time.Millisecond)
		default:
			if r.Admit(id, now) {
				r.Joined(id)
				seated[id] = true
			}
		}
	}
	strangers, lives := 0, map[clustermesh.Origin]int{}
	for id := range seated {
		if lives[id.Origin]++; !known[id.Origin] {
			strangers++
		}
	}
	if most := 256 + 3*(4+64); strangers > most {
		return fmt.Errorf("%d members that are not known, and the limit is %d", strangers, most)
	}
	for o := range known {
		if id := (member.ID{Origin: o, Boot: c.Uint64()}); lives[o] < 64 && !r.Admit(id, now.Add(time.Hour)) {
			return fmt.Errorf("node %s finds no room beside %d others", o, len(seated))
		}
	}
	return nil
}
