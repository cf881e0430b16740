package socklb

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	"pgregory.net/rapid"

	"strait.io/strait/datapath"
	"strait.io/strait/internal/l4"
	"strait.io/strait/internal/problem"
)

// outcome is what a wanted state led to.
type outcome struct {
	before, after map[l4.Addr]installed
	want          []datapath.Frontend
	prune         bool
	faults        faults
	sizes         Config
}

// complaint names a frontend. One that is whole means that the maps as such failed, when it was this frontend's turn.
type complaint struct {
	text  string
	whole bool
}

// complaints parses the Problems of a reconcile. Others name no frontend.
func complaints(t *rapid.T, ps []problem.Problem, err error) (of map[l4.Addr]complaint, others []error) {
	of = map[l4.Addr]complaint{}
	add := func(name string, c complaint) {
		a := addr(strings.TrimSuffix(strings.Fields(name)[0], ":"))
		if _, twice := of[a]; twice {
			t.Fatalf("%s is named twice: %v, %v", a, ps, err)
		}
		of[a] = c
	}
	for _, p := range ps {
		name, is := strings.CutPrefix(p.Object, "frontend ")
		if !is {
			t.Fatalf("a Problem of no frontend: %s", p)
		}
		add(name, complaint{text: p.String()})
	}
	joined, _ := err.(interface{ Unwrap() []error })
	if joined == nil {
		return of, nil
	}
	for _, e := range joined.Unwrap() {
		if name, is := strings.CutPrefix(e.Error(), "put frontend "); is {
			add(name, complaint{e.Error(), true})
			continue
		}
		others = append(others, e)
	}
	return of, others
}

// checkOutcome: every frontend is as it should be, or as it was and named with a cause that is true. What concerns single
// frontends is no error.
func checkOutcome(t *rapid.T, o outcome, ps []problem.Problem, err error) {
	if err != nil && o.faults.Grace == 0 && o.faults.Zero == 0 {
		t.Fatalf("no fault of the maps as such was injected: %v", err)
	}
	problems, others := complaints(t, ps, err)
	for _, e := range others {
		if o.faults.Grace == 0 || !errors.Is(e, errInjected) {
			t.Fatalf("an error names no frontend: %v", e)
		}
	}
	last := map[l4.Addr]datapath.Frontend{}
	for _, f := range o.want {
		last[f.Addr] = f
	}
	for a, f := range last {
		p, named := problems[a]
		got, there := o.after[a]
		n, invalid := normal(f)
		switch {
		case invalid == nil && there && got.frontend.Equal(n):
			if named {
				t.Fatalf("%s is as wanted, and named: %v", a, p.text)
			}
		case !named:
			t.Fatalf("%s is not as wanted, and not named: wanted %v, holds %v", a, n, got.frontend)
		case !same(o.before, o.after, a):
			t.Fatalf("%s is neither as wanted nor as it was: %v, was %v: %v", a, got.frontend, o.before[a].frontend, p.text)
		case invalid != nil:
			o.explains(t, f, p, invalid.Error())
		default:
			o.explains(t, f, p, "")
			o.justify(t, n, p)
		}
		delete(problems, a)
	}
	for a := range o.before {
		if _, wanted := last[a]; wanted {
			continue
		}
		p, named := problems[a]
		_, there := o.after[a]
		switch {
		case !o.prune && !same(o.before, o.after, a):
			t.Fatalf("%s was changed without being wanted", a)
		case there != (named || !o.prune):
			t.Fatalf("%s is there: %v, prune %v, error %v", a, there, o.prune, p.text)
		case named:
			if p.whole || !strings.Contains(p.text, "cannot be removed: ") || !p.has(errInjected) && !p.has(errFull) || !slices.Contains(o.faults.Addrs, a) {
				t.Fatalf("%s: %v", a, p.text)
			}
		}
		delete(problems, a)
	}
	for a := range o.after {
		if _, wanted := last[a]; !wanted && !same(o.before, o.after, a) {
			t.Fatalf("%s came from nowhere", a)
		}
	}
	if len(problems) > 0 {
		t.Fatalf("these are named, and belong to no frontend: %v", problems)
	}
}

func (c complaint) has(err error) bool { return strings.Contains(c.text, err.Error()) }

// explains: a person who reads the Problem knows which object failed, and what is in force.
func (o outcome) explains(t *rapid.T, f datapath.Frontend, p complaint, cause string) {
	verb, force := "cannot be added", "it does not answer"
	if h, was := o.before[f.Addr]; was {
		verb, force = "cannot be updated", fmt.Sprintf("its %d old backends stay in force", len(h.frontend.Backends))
	}
	if p.whole {
		verb, force = "", ""
	}
	for _, part := range []string{"frontend " + f.Addr.String(), verb, f.Service, cause, force} {
		if !strings.Contains(p.text, part) {
			t.Fatalf("%q lacks %q", p.text, part)
		}
	}
}

// justify: what did not come into force could not.
func (o outcome) justify(t *rapid.T, f datapath.Frontend, p complaint) {
	faulty := slices.Contains(o.faults.Addrs, f.Addr)
	switch {
	case p.has(errInjected) && (!p.whole && faulty || p.whole && (o.faults.Zero > 0 || o.faults.Grace > 0)):
	case !p.has(errFull):
		t.Fatalf("no such fault was injected: %v", p.text)
	case o.faults.Grace > 0 || faulty && o.faults.Full:
	case strings.Contains(p.text, "map backends") && longestGap(o.after, o.sizes.MaxBackends) < len(f.Backends):
	case strings.Contains(p.text, "map services") && len(o.after) == int(o.sizes.MaxFrontends):
	default:
		t.Fatalf("there is room for %d backends in a row of %d, for %d frontends of %d: %v", longestGap(o.after, o.sizes.MaxBackends),
			len(f.Backends), len(o.after), o.sizes.MaxFrontends, p.text)
	}
}

// longestGap is the longest run of slots that no frontend has.
func longestGap(force map[l4.Addr]installed, size uint32) int {
	taken := make([]bool, size)
	for _, h := range force {
		for n := h.block.base; n < h.block.end(); n++ {
			taken[n] = true
		}
	}
	run, longest := 0, 0
	for _, t := range taken {
		run++
		if t {
			run = 0
		}
		longest = max(longest, run)
	}
	return longest
}

// checkDeath: who dies on the way leaves each frontend as it was, or as wanted; its affinity may be new beside
// its old backends.
func checkDeath(t *rapid.T, before, after map[l4.Addr]installed, want []datapath.Frontend, prune bool) {
	last := map[l4.Addr]datapath.Frontend{}
	for _, f := range want {
		if n, err := normal(f); err == nil {
			last[f.Addr] = n
		} else {
			delete(last, f.Addr)
			last[f.Addr] = before[f.Addr].frontend
		}
	}
	for a, h := range after {
		n, wanted := last[a]
		mixed := before[a].frontend
		mixed.AffinitySeconds = n.AffinitySeconds
		if !same(before, after, a) && !(wanted && (h.frontend.Equal(n) || h.frontend.Equal(mixed))) {
			t.Fatalf("after a death %s is neither as wanted nor as it was: %v, was %v", a, h.frontend, before[a].frontend)
		}
	}
	for a := range before {
		_, wanted := last[a]
		if _, there := after[a]; !there && (wanted || !prune) {
			t.Fatalf("after a death %s is gone, which was not to be removed", a)
		}
	}
}
