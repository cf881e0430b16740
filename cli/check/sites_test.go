package check

import (
	"fmt"
	"net/netip"
	"slices"
	"strings"
	"testing"

	"strait.io/strait/daemon/api"
)

// bare is a cluster that has all that strait needs, with nodes n1 and n2.
func bare(context, id, pods, other string) Site {
	s := Site{Context: context, ID: id, Ranges: []netip.Prefix{netip.MustParsePrefix(pods)}, Replies: map[string][]api.PortReply{}, Missing: map[string]string{}}
	for _, n := range []string{"n1", "n2"} {
		s.Machines = append(s.Machines, fit(n))
		for _, port := range []string{"7946/TCP", "7946/UDP", "8472/UDP"} {
			s.Replies[n] = append(s.Replies[n], api.PortReply{Node: other + "/n1", Port: port, RTT: 0.01, Ahead: 0.2})
		}
	}
	return s
}

// TestPreSites: each thing that is against an installation fails its check and no other.
func TestPreSites(t *testing.T) {
	const reach, clocks = "the nodes reach each other's ports", "their clocks agree"
	for what, c := range map[string]struct {
		fault func(s *Site)
		title string
		state State
		text  string
	}{
		"all is well":        {func(*Site) {}, "", OK, ""},
		"it is there":        {func(s *Site) { s.Installed = true }, "strait is not there yet", Warning, "context c2"},
		"one id":             {func(s *Site) { s.ID = "east" }, "their ids differ", Failed, "contexts c1 and c2 lead to clusters with one id, east"},
		"no ids yet":         {func(s *Site) { s.ID = "" }, "", OK, ""},
		"one range":          {func(s *Site) { s.Ranges[0] = netip.MustParsePrefix("10.1.7.0/24") }, "their pods have different ranges", Failed, "10.1.0.0/16 of context c1 overlaps with 10.1.7.0/24 of context c2"},
		"unknown ranges":     {func(s *Site) { s.Ranges = nil }, "their pods have different ranges", Warning, "--pods c2=CIDR"},
		"no right":           {func(s *Site) { s.Denied = []string{"daemonsets.apps in namespace strait-system"} }, "you may install strait", Failed, "you may not create daemonsets.apps"},
		"an old MCS API":     {func(s *Site) { s.Served = []string{"v1alpha1"} }, "they take the MCS API", Warning, "--upgrade-crds"},
		"both of it":         {func(s *Site) { s.Served = []string{"v1alpha1", "v1beta1"} }, "", OK, ""},
		"no CoreDNS":         {func(s *Site) { s.DNSError = "no CoreDNS" }, "CoreDNS can answer for the clusterset", Warning, "no CoreDNS"},
		"another network":    {func(s *Site) { s.Warnings = []string{"ConfigMap kube-system/cilium-config"} }, "their networks go well with strait", Warning, "cilium-config"},
		"something unread":   {func(s *Site) { s.Unread = []string{"forbidden"} }, "all of this could be read", Unknown, "forbidden"},
		"no image":           {func(s *Site) { s.Missing["n2"] = "ErrImagePull" }, "each can run the image", Failed, "c2/n2"},
		"a node's own fault": {func(s *Site) { s.Machines[1].NFTError = "none" }, "it has nftables", Failed, "c2/n2"},
		"a closed port":      {func(s *Site) { s.Replies["n2"][2].Error = "no answer in time" }, reach, Failed, "c2/n2 → c1/n1"},
		"only c1 has sent":   {func(s *Site) { s.Replies["n1"], s.Replies["n2"] = nil, nil }, "", OK, ""},
		"a clock": {func(s *Site) {
			for i := range s.Replies["n1"] {
				s.Replies["n1"][i].Ahead = -20
			}
		}, clocks, Warning, "the clocks of c1/n1 and c2/n1 differ by 20 s"},
		"a slow way": {func(s *Site) { s.Replies["n1"][0].Ahead, s.Replies["n1"][0].RTT = -20, 18 }, "", OK, ""},
	} {
		ill := bare("c2", "west", "10.2.0.0/16", "c1")
		c.fault(&ill)
		var bad []Check
		for _, k := range PreSites([]Site{bare("c1", "east", "10.1.0.0/16", "c2"), ill}) {
			if k.State != OK {
				bad = append(bad, k)
			}
		}
		if c.title == "" {
			if len(bad) > 0 {
				t.Errorf("%s: %+v", what, bad)
			}
			continue
		}
		if len(bad) != 1 || bad[0].Title != c.title || bad[0].State != c.state || !strings.Contains(fmt.Sprintf("%+v", bad[0].Findings), c.text) {
			t.Errorf("%s: %+v", what, bad)
		}
	}
}

// TestTargets: every node is sent to, and no node sends to itself or to more than the bound of a cluster.
func TestTargets(t *testing.T) {
	counts := []int{1, 2, 30, 0}
	got := map[[2]int]int{}
	for c, n := range counts {
		for node := range n {
			per := map[int]int{}
			for _, to := range Targets(counts, c, node, 8) {
				got[to]++
				per[to[0]]++
				if to == [2]int{c, node} || to[1] >= counts[to[0]] {
					t.Errorf("%d/%d sends to %v", c, node, to)
				}
			}
			for _, n := range per {
				if n > 8 {
					t.Errorf("%d/%d sends to %d nodes of a cluster", c, node, n)
				}
			}
		}
	}
	if len(got) != 33 {
		t.Errorf("%d of 33 nodes are sent to", len(got))
	}
	if all := Targets([]int{2, 2}, 0, 0, 8); !slices.Equal(all, [][2]int{{0, 1}, {1, 0}, {1, 1}}) {
		t.Errorf("%v", all)
	}
}
