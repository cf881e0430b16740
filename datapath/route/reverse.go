package route

import (
	"fmt"
	"io/fs"
	"slices"
	"strings"

	"github.com/vishvananda/netlink"
	"golang.org/x/sys/unix"
)

// Strict returns the links on which the kernel drops an IPv4 packet of another machine if its own route to
// that machine leads to another link (rp_filter 1), sorted by name. Packets of one machine can come by
// several links only if several have a gateway; with one, it returns none. Root is a file system with
// proc/sys of this network namespace.
func Strict(root fs.FS) ([]string, error) {
	h, err := open()
	if err != nil {
		return nil, err
	}
	defer h.Close()
	links, err := gateways(h)
	if err != nil || len(links) < 2 {
		return nil, err
	}
	return strict(root, links)
}

// gateways returns the names of the links that lead to a gateway, by any table, sorted.
func gateways(h *netlink.Handle) (names []string, err error) {
	if err := h.SetStrictCheck(true); err != nil { // see listOurs
		return nil, fmt.Errorf("set strict checking on netlink socket: %w", err)
	}
	var indexes []int
	for _, protocol := range connecting {
		routes, err := routesOf(h, unix.RT_TABLE_UNSPEC, unix.AF_INET, protocol)
		if err != nil {
			return nil, err
		}
		for _, r := range routes {
			if r.Gw != nil {
				indexes = append(indexes, r.LinkIndex)
			}
			for _, hop := range r.MultiPath {
				if hop.Gw != nil {
					indexes = append(indexes, hop.LinkIndex)
				}
			}
		}
	}
	slices.Sort(indexes)
	for _, index := range slices.Compact(indexes) {
		l, err := h.LinkByIndex(index)
		if err != nil {
			return nil, fmt.Errorf("find link %d, to which a route leads: %w", index, err)
		}
		names = append(names, l.Attrs().Name)
	}
	slices.Sort(names)
	return names, nil
}

// strict returns those of the links that filter strictly: the kernel takes the larger of a link's own
// setting and that of all, and 2 is loose.
func strict(root fs.FS, links []string) (out []string, err error) {
	all, err := fs.ReadFile(root, "proc/sys/net/ipv4/conf/all/rp_filter")
	if err != nil {
		return nil, err
	}
	for _, link := range links {
		own, err := fs.ReadFile(root, "proc/sys/net/ipv4/conf/"+link+"/rp_filter")
		if err != nil {
			return nil, err
		}
		if max(strings.TrimSpace(string(all)), strings.TrimSpace(string(own))) == "1" {
			out = append(out, link)
		}
	}
	return out, nil
}
