package check

import (
	"strings"
	"testing"

	"strait.io/strait/daemon/api"
	"strait.io/strait/datapath"
)

// fit is a machine that has all that straitd needs.
func fit(name string) api.NodeFacts {
	return api.NodeFacts{Node: name, Kernel: "6.12.0", Features: []datapath.Feature{{Name: "bpf links", OK: true}}, Cgroup: "/sys/fs/cgroup", BPFFS: true,
		PinsPath: "/sys/fs/bpf/strait", WireGuard: "kernel", Wanted: "auto", Link: "eth0", MTU: 1500, Ports: []api.PortFact{{For: "gossip", Setting: "gossip.bind", Port: "7946/UDP"}}}
}

// TestPre: each thing that a machine lacks fails its check and no other, with the machine and what to do.
func TestPre(t *testing.T) {
	for what, c := range map[string]struct {
		fault func(f *api.NodeFacts)
		title string
		state State
		says  string
	}{
		"all is well":             {func(*api.NodeFacts) {}, "", OK, ""},
		"a feature":               {func(f *api.NodeFacts) { f.Features[0] = datapath.Feature{Name: "bpf links", Since: "5.7"} }, "it has every feature that strait can use", Failed, "Linux has since 5.7"},
		"no root":                 {func(f *api.NodeFacts) { f.Features, f.FeaturesError = nil, "operation not permitted" }, "it has every feature that strait can use", Unknown, "not permitted"},
		"no nftables":             {func(f *api.NodeFacts) { f.NFTError = "protocol not supported" }, "it has nftables", Failed, "protocol not supported"},
		"userspace WireGuard":     {func(f *api.NodeFacts) { f.WireGuard = "userspace" }, "it has WireGuard", Warning, "tunnels run in userspace"},
		"which was chosen":        {func(f *api.NodeFacts) { f.WireGuard, f.Wanted = "userspace", "userspace" }, "", OK, ""},
		"kernel only":             {func(f *api.NodeFacts) { f.WireGuard, f.Wanted = "userspace", "kernel" }, "it has WireGuard", Failed, "mesh.implementation is kernel"},
		"no tunnels":              {func(f *api.NodeFacts) { f.WireGuard = "" }, "it has WireGuard", Failed, "neither"},
		"which are off":           {func(f *api.NodeFacts) { f.WireGuard, f.Wanted, f.MTU = "", "off", 1000 }, "", OK, ""},
		"cgroup v1":               {func(f *api.NodeFacts) { f.CgroupError = "cgroup v2 is not mounted" }, "cgroup v2 is mounted, with its root", Failed, "not mounted"},
		"no bpffs":                {func(f *api.NodeFacts) { f.BPFFS = false }, "a BPF file system is mounted", Warning, "/sys/fs/bpf/strait"},
		"another balancer":        {func(f *api.NodeFacts) { f.Foreign = []datapath.ForeignProgram{{Hook: "connect4", Name: "cil_sock4"}} }, "no other program decides first", Warning, "cil_sock4"},
		"a program on other hook": {func(f *api.NodeFacts) { f.Foreign = []datapath.ForeignProgram{{Hook: "getpeername4", Name: "x"}} }, "", OK, ""},
		"unlisted programs":       {func(f *api.NodeFacts) { f.ForeignError = "not permitted" }, "no other program decides first", Unknown, "not permitted"},
		"a taken port":            {func(f *api.NodeFacts) { f.Ports[0].Error = "address already in use" }, "the ports are free", Failed, "7946/UDP, for gossip: address already in use"},
		"a small MTU":             {func(f *api.NodeFacts) { f.MTU = 1300 }, "packets are large enough for tunnels", Failed, "link eth0 has an MTU of 1300"},
		"a strict link":           {func(f *api.NodeFacts) { f.Strict = []string{"eth1"} }, "packets may come by any link", Warning, "eth1 (rp_filter 1) drops"},
		"unreadable filters":      {func(f *api.NodeFacts) { f.StrictError = "not permitted" }, "packets may come by any link", Unknown, "not permitted"},
		"no link":                 {func(f *api.NodeFacts) { f.Link, f.MTU = "", 0 }, "packets are large enough for tunnels", Unknown, "no link"},
	} {
		ill := fit("n2")
		c.fault(&ill)
		checks := Pre([]api.NodeFacts{fit("n1"), ill})
		var bad []Check
		for _, k := range checks {
			if k.State != OK {
				bad = append(bad, k)
			}
		}
		if c.state == OK {
			if len(bad) > 0 || len(checks) < 8 {
				t.Errorf("%s: %+v", what, bad)
			}
			continue
		}
		if len(bad) != 1 || bad[0].Title != c.title || bad[0].State != c.state || len(bad[0].Findings) != 1 {
			t.Errorf("%s: %+v", what, bad)
			continue
		}
		if f := bad[0].Findings[0]; !strings.Contains(f.Message, c.says) || strings.Join(f.Nodes, " ") != "n2" || f.Try == "" {
			t.Errorf("%s: %+v", what, f)
		}
	}
}
