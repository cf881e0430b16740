package health

import (
	"errors"
	"fmt"
	"os"
	"slices"
	"testing"
	"time"

	"strait.io/strait/clustermesh"
	"strait.io/strait/datapath/tunnelhealth"
	"strait.io/strait/internal/problem"
)

func TestTunnelProblems(t *testing.T) {
	now := time.Date(2026, 11, 26, 12, 0, 0, 0, time.UTC)
	verdict := func(s tunnelhealth.State, age time.Duration) tunnelhealth.Verdict {
		return tunnelhealth.Verdict{State: s, Since: now.Add(-age), Size: 1420}
	}
	const long = time.Minute
	for _, c := range []struct {
		name     string
		verdicts []tunnelhealth.Verdict
		contact  clustermesh.Contact
		unprobed error
		want     string
		again    time.Duration
	}{
		{"all is well", []tunnelhealth.Verdict{verdict(tunnelhealth.Carrying, long), verdict(tunnelhealth.Unknown, long)}, clustermesh.Alive, nil, "", 0},
		{"each kind", []tunnelhealth.Verdict{verdict(tunnelhealth.Carrying, long), verdict(tunnelhealth.Never, long), verdict(tunnelhealth.Silent, long),
			verdict(tunnelhealth.OneWay, long), verdict(tunnelhealth.Lossy, long), verdict(tunnelhealth.Narrow, long), verdict(tunnelhealth.Returning, long)},
			clustermesh.Alive, nil, "STR4201 b/n1 STR4202 b/n2 STR4203 b/n3 STR4204 b/n4 STR4205 b/n5 ", 0},
		{"too early to say", []tunnelhealth.Verdict{verdict(tunnelhealth.Carrying, long), verdict(tunnelhealth.Silent, 2*time.Second)}, clustermesh.Alive, nil, "", 2 * time.Second},
		{"a machine that is just back", []tunnelhealth.Verdict{{State: tunnelhealth.Silent, Since: now.Add(-long), Gone: now.Add(-time.Second)}}, clustermesh.Alive, nil, "", 3 * time.Second},
		{"only one of one", []tunnelhealth.Verdict{verdict(tunnelhealth.Silent, long)}, clustermesh.Alive, nil, "STR4202 b/n0 ", 0},
		{"all", []tunnelhealth.Verdict{verdict(tunnelhealth.Silent, long), verdict(tunnelhealth.OneWay, 0), verdict(tunnelhealth.Unknown, 0)}, clustermesh.Quiet, nil, "STR4206 ", tellAfter},
		{"machines that do not answer", []tunnelhealth.Verdict{verdict(tunnelhealth.Silent, long), verdict(tunnelhealth.Silent, long)}, clustermesh.Silent, nil, "", 0},
		{"not heard", []tunnelhealth.Verdict{verdict(tunnelhealth.Silent, long)}, clustermesh.Held, nil, "", 0},
		{"cannot be probed", nil, clustermesh.Alive, fmt.Errorf("open: %w", os.ErrPermission), "STR4207 ", 0},
		{"cannot be probed otherwise", nil, clustermesh.Alive, errors.New("no device"), "STR4207 ", 0},
		{"many", append(slices.Repeat([]tunnelhealth.Verdict{verdict(tunnelhealth.Silent, long)}, maxDown+1), verdict(tunnelhealth.Carrying, long)), clustermesh.Alive, nil, "STR4206 ", 0},
	} {
		t.Run(c.name, func(t *testing.T) {
			s := clustermesh.State{Contacts: clustermesh.ByOrigin[clustermesh.Contact]{}}
			h := Tunnels{}
			for i, v := range c.verdicts {
				o := clustermesh.Origin{Cluster: "b", Node: clustermesh.NodeName(fmt.Sprintf("n%d", i))}
				h[o] = v
				s.Contacts = s.Contacts.With(o, c.contact)
			}
			problems, again := h.Problems(c.unprobed, s, now)
			got := ""
			for _, p := range problems {
				node := ""
				if p.Code != problem.TunnelsAllSilent && p.Code != problem.TunnelsUnprobed {
					node = p.Object[len("tunnel to "):] + " "
				}
				got += string(p.Code) + " " + node
				if p.Message == "" || p.Try == "" && p.Code != problem.TunnelsUnprobed {
					t.Errorf("%s is %q, try %q", p.Code, p.Message, p.Try)
				}
			}
			if got != c.want || again != c.again {
				t.Errorf("%q again in %s, want %q in %s: %v", got, again, c.want, c.again, problems)
			}
			found := h.Faults()
			for o, v := range h {
				f, is := found[o]
				narrow := v.State == tunnelhealth.Narrow
				if is != (v.State.Dark() || narrow) || is && (f.Why == "" || f.Impaired != narrow) {
					t.Errorf("%s is %s: fault %+v", o, v.State, f)
				}
			}
		})
	}
}
