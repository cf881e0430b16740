package plan_test

import (
	"fmt"
	"net/netip"
	"testing"
	"time"

	"pgregory.net/rapid"

	"strait.io/strait/clustermesh"
	"strait.io/strait/clustermesh/record"
	"strait.io/strait/daemon/plan"
	"strait.io/strait/internal/key"
)

// TestPlanLeavesPast: planning changes no Past. A plan that is made again from the same Inputs and
// the same Past is the same, also after later plans.
func TestPlanLeavesPast(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		in := plan.Inputs{
			Self: plan.Self{Cluster: "a", Node: "n1"}, Config: ramping, Now: time.Unix(1_000_000, 0),
			State: clustermesh.State{Records: clustermesh.ByOrigin[clustermesh.Record]{}, Contacts: clustermesh.ByOrigin[clustermesh.Contact]{}},
		}
		in = nextInputs(rt, in, 0)
		before, _ := plan.Plan(in, plan.Past{})
		for _, p := range before.Desired.Peers {
			in.Device = append(in.Device, plan.Had{Key: p.Key, Underlay: p.Underlay, AllowedIPs: p.AllowedIPs})
		}
		var all []made
		var past plan.Past
		for step := range rapid.IntRange(1, 12).Draw(rt, "steps") {
			in = nextInputs(rt, in, step)
			r, next := plan.Plan(in, past)
			all = append(all, made{in, past, everything(r)})
			for n, m := range all[max(0, len(all)-3):] {
				if r, _ := plan.Plan(m.in, m.past); everything(r) != m.seen {
					rt.Fatalf("step %d, plan %d again:\n%s\nwas\n%s", step, n, everything(r), m.seen)
				}
			}
			past = next
		}
	})
}

// made is a plan and what it was made from.
type made struct {
	in   plan.Inputs
	past plan.Past
	seen string
}

func everything(r plan.Result) string {
	out := fmt.Sprintf("%s%+v %+v %s\n", seenOf(r), r.Mesh.Ends, r.Mesh.Guests, r.Next)
	for _, i := range r.Imports {
		out += fmt.Sprintln(i.Version())
	}
	for _, g := range r.Globals {
		out += fmt.Sprintln(g.Version())
	}
	return out
}

// nextInputs are Inputs a moment later, in which something may differ.
func nextInputs(rt *rapid.T, in plan.Inputs, step int) plan.Inputs {
	in.Now = in.Now.Add(time.Duration(rapid.IntRange(-1, 4).Draw(rt, "half seconds")) * time.Second / 2)
	in.Learning = rapid.IntRange(0, 3).Draw(rt, "learning") == 0
	in.Host.Unknown = rapid.IntRange(0, 5).Draw(rt, "unknown host") == 0
	for range rapid.IntRange(0, 4).Draw(rt, "records") {
		o := drawOrigin(rt)
		content, _ := record.Usable(o, drawContent(rt, o, o.Cluster[0]))
		if o.Node == "" && rapid.IntRange(0, 2).Draw(rt, "drain") == 0 {
			content.Drain = &clustermesh.Drain{Since: in.Now.Unix(), Over: 5}
		}
		in.State.Records = in.State.Records.With(o, clustermesh.Record{Origin: o, Stamp: clustermesh.Stamp{Epoch: 1, Version: uint64(step)}, Content: content, KeyProven: rapid.Bool().Draw(rt, "proven")})
		in.State.Contacts = in.State.Contacts.With(o, rapid.SampledFrom([]clustermesh.Contact{clustermesh.Silent, clustermesh.Alive}).Draw(rt, "contact"))
	}
	switch rapid.IntRange(0, 5).Draw(rt, "what else") {
	case 0:
		in.Guests = []plan.Guest{guest("laptop", 1, "10.1.1.9/32"), {Name: "phone", Key: key.Public{1}, Range: []netip.Prefix{netip.MustParsePrefix("10.99.0.2/32")}}}
	case 1:
		in.Guests = nil
	case 2:
		in.Far = map[clustermesh.ClusterName]uint32{drawOrigin(rt).Cluster: 3}
	case 3:
		in.Faults = map[clustermesh.Origin]plan.Fault{drawOrigin(rt): {Why: "carries nothing"}}
	case 4:
		in.Remotes = []plan.Remote{{Cluster: "b", Range: netip.MustParsePrefix("10.2.0.0/16")}}
	}
	return in
}

// TestOtherPast: a Past of another node or configuration is none.
func TestOtherPast(t *testing.T) {
	in := plan.Inputs{State: clusterset(), Self: plan.Self{Cluster: "a", Node: "n1"}, Config: ramping, Now: time.Unix(1_000_000, 0)}
	_, past := plan.Plan(in, plan.Past{})
	for name, change := range map[string]func(*plan.Inputs){
		"node":          func(in *plan.Inputs) { in.Self = plan.Self{Cluster: "b", Node: "n1"} },
		"configuration": func(in *plan.Inputs) { in.Config.CIDRs = nil },
	} {
		other := in
		change(&other)
		fresh, _ := plan.Plan(other, plan.Past{})
		if r, _ := plan.Plan(other, past); everything(r) != everything(fresh) {
			t.Errorf("after a plan for another %s:\n%s\nwant\n%s", name, everything(r), everything(fresh))
		}
	}
}
