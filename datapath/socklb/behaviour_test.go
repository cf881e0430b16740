package socklb

import (
	"reflect"
	"strings"
	"testing"

	"strait.io/strait/datapath"
	"strait.io/strait/internal/l4"
	"strait.io/strait/internal/problem"
)

// balancer is what LB and Fake have in common.
type balancer interface {
	Reconcile(want []datapath.Frontend, prune bool) ([]problem.Problem, error)
	Frontends() ([]datapath.Frontend, error)
}

var (
	_ balancer = (*LB)(nil)
	_ balancer = (*Fake)(nil)
)

// Sizes that behaviour expects of a balancer: small enough to be filled.
const smallFrontends, smallBackends = 4, 16

// behaviour is the test that real and fake share.
func behaviour(t *testing.T, b balancer) {
	web := datapath.Frontend{Addr: addr("10.96.0.1:80/TCP"), Service: "default/web", Backends: backends("10.0.0.1:80", "10.0.0.2:80*3")}
	dns := datapath.Frontend{Addr: addr("[fd00::a]:53/UDP"), Backends: backends("[fd00::1]:53")}
	none := datapath.Frontend{Addr: addr("10.96.0.1:80/UDP"), Backends: backends()}
	many := datapath.Frontend{Addr: addr("10.96.0.9:80/TCP"), Backends: manyBackends(smallBackends)}
	invalid := datapath.Frontend{Addr: addr("10.96.0.3:80/SCTP"), Service: "default/sctp"}
	web2, unsorted := web, web
	web2.Backends = backends("10.0.0.2:80", "10.0.0.3:80", "10.0.0.4:80")
	unsorted.Backends = backends("10.0.0.4:80", "10.0.0.3:80", "10.0.0.2:80")
	webInvalid := web2
	webInvalid.Backends = backends("[fd00::1]:80")
	others := make([]datapath.Frontend, smallFrontends+1)
	for i := range others {
		others[i] = datapath.Frontend{Addr: l4.New(web.Addr.IP, uint16(1000+i), l4.TCP), Backends: backends("10.0.0.7:7")}
	}
	for _, step := range []struct {
		name      string
		want      []datapath.Frontend
		prune     bool
		problems  []string // how they begin, in order
		installed []datapath.Frontend
	}{
		{"nothing", nil, true, nil, nil},
		{"add", []datapath.Frontend{web, dns, none}, true, nil, []datapath.Frontend{web, none, dns}},
		{"again", []datapath.Frontend{web, dns, none}, true, nil, []datapath.Frontend{web, none, dns}},
		{"change", []datapath.Frontend{web2, dns, none}, true, nil, []datapath.Frontend{web2, none, dns}},
		{"unsorted is the same", []datapath.Frontend{unsorted, dns, none}, true, nil, []datapath.Frontend{web2, none, dns}},
		{"last of two counts", []datapath.Frontend{web, web2}, true, nil, []datapath.Frontend{web2}},
		{"no prune", []datapath.Frontend{dns}, false, nil, []datapath.Frontend{web2, dns}},
		{"invalid is named and changes nothing", []datapath.Frontend{webInvalid, invalid, dns}, true,
			[]string{"frontend 10.96.0.1:80/TCP (default/web): cannot be updated: backends[0]", "frontend 10.96.0.3:80/SCTP (default/sctp): cannot be added: protocol"},
			[]datapath.Frontend{web2, dns}},
		{"to none", []datapath.Frontend{{Addr: web.Addr, Backends: backends()}}, true, nil, []datapath.Frontend{{Addr: web.Addr, Backends: backends()}}},
		{"from none", []datapath.Frontend{web2}, true, nil, []datapath.Frontend{web2}},
		{"backends full", []datapath.Frontend{many, web2}, true,
			[]string{"frontend 10.96.0.9:80/TCP: cannot be added: no room: map backends"}, []datapath.Frontend{web2}},
		{"a removal makes room", []datapath.Frontend{many}, true, nil, []datapath.Frontend{many}},
		{"full, the old stays", []datapath.Frontend{{Addr: many.Addr, Service: "default/many", Backends: many.Backends[1:]}}, true,
			[]string{"frontend 10.96.0.9:80/TCP (default/many): cannot be updated: no room: map backends has no 15 free slots in a row (16 in all, longest run 0); its 16 old backends stay in force; raise maxBackends"},
			[]datapath.Frontend{many}},
		{"services full", others, true, []string{"frontend 10.96.0.1:1004/TCP: cannot be added: no room: map services holds 4 frontends"}, others[:smallFrontends]},
		{"one goes, one comes", others[1:], true, nil, others[1:]},
		{"remove all", nil, true, nil, nil},
	} {
		problems, err := b.Reconcile(step.want, step.prune)
		if err != nil {
			t.Fatalf("%s: %v", step.name, err)
		}
		checkProblems(t, step.name, problems, step.problems)
		checkInstalled(t, step.name, b, step.installed)
	}
}

func manyBackends(n int) (out []datapath.Backend) {
	for i := range n {
		b := backends("10.0.1.1:1")[0]
		b.Port = uint16(i + 1)
		out = append(out, b)
	}
	return out
}

func checkProblems(t *testing.T, step string, got []problem.Problem, want []string) {
	t.Helper()
	if len(got) != len(want) {
		t.Fatalf("%s: %d Problems, want %d: %v", step, len(got), len(want), got)
	}
	for i, w := range want {
		if !strings.HasPrefix(got[i].String(), w) {
			t.Errorf("%s: Problem %q does not begin with %q", step, got[i], w)
		}
	}
}

func checkInstalled(t *testing.T, step string, b balancer, want []datapath.Frontend) {
	t.Helper()
	got, err := b.Frontends()
	if err != nil {
		t.Fatalf("%s: %v", step, err)
	}
	expect := []datapath.Frontend{}
	for _, f := range want {
		f.Service = ""
		expect = append(expect, f)
	}
	if !reflect.DeepEqual(got, expect) {
		t.Errorf("%s: holds\n%v, want\n%v", step, got, expect)
	}
}

func TestFakeBehaviour(t *testing.T) {
	behaviour(t, &Fake{MaxFrontends: smallFrontends, MaxBackends: smallBackends})
}
