package socklb

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	"pgregory.net/rapid"

	"strait.io/strait/datapath"
	"strait.io/strait/internal/l4"
)

// outcome is what a wanted state led to.
type outcome struct {
	before, after map[l4.Addr]held
	want          []datapath.Frontend
	prune         bool
	faults        faults
	sizes         Config
}

// problem is an error that names a frontend.
type problem struct {
	verb string
	err  error
}

// problemsOf takes the errors of a reconcile apart. Others name none.
func problemsOf(t *rapid.T, err error) (of map[l4.Addr]problem, others []error) {
	of = map[l4.Addr]problem{}
	joined, _ := err.(interface{ Unwrap() []error })
	if joined == nil {
		return of, nil
	}
	for _, e := range joined.Unwrap() {
		words := strings.Fields(e.Error())
		if len(words) < 3 || words[1] != "frontend" {
			others = append(others, e)
			continue
		}
		a := addr(strings.TrimSuffix(words[2], ":"))
		if _, twice := of[a]; twice {
			t.Fatalf("%s is named twice: %v", a, err)
		}
		of[a] = problem{words[0], e}
	}
	return of, others
}

// checkOutcome: every frontend is as it should be, or as it was and named in an error whose cause is true.
func checkOutcome(t *rapid.T, o outcome, err error) {
	problems, others := problemsOf(t, err)
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
				t.Fatalf("%s is as wanted, and named: %v", a, p.err)
			}
		case !named:
			t.Fatalf("%s is not as wanted, and not named: wanted %v, holds %v", a, n, got.frontend)
		case !same(o.before, o.after, a):
			t.Fatalf("%s is neither as wanted nor as it was: %v, was %v: %v", a, got.frontend, o.before[a].frontend, p.err)
		case invalid != nil:
			o.says(t, f, p, invalid.Error())
		default:
			o.says(t, f, p, "")
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
			t.Fatalf("%s is there: %v, prune %v, error %v", a, there, o.prune, p.err)
		case named:
			if p.verb != "remove" || !errors.Is(p.err, errInjected) && !errors.Is(p.err, errFull) || !slices.Contains(o.faults.Addrs, a) {
				t.Fatalf("%s: %s: %v", a, p.verb, p.err)
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
		t.Fatalf("these are named, and nobody's: %v", problems)
	}
}

// says: a person who reads the error knows which object failed, and what is in force.
func (o outcome) says(t *rapid.T, f datapath.Frontend, p problem, cause string) {
	verb, force := "add", "it does not answer"
	if h, was := o.before[f.Addr]; was {
		verb, force = "update", fmt.Sprintf("its %d old backends stay in force", len(h.frontend.Backends))
	}
	for _, part := range []string{verb + " frontend " + f.Addr.String(), f.Service, cause, force} {
		if !strings.Contains(p.err.Error(), part) {
			t.Fatalf("error %q lacks %q", p.err, part)
		}
	}
}

// justify: what did not come into force could not.
func (o outcome) justify(t *rapid.T, f datapath.Frontend, p problem) {
	faulty := slices.Contains(o.faults.Addrs, f.Addr)
	switch {
	case errors.Is(p.err, errInjected) && (faulty || o.faults.Zero > 0 || o.faults.Grace > 0):
	case !errors.Is(p.err, errFull):
		t.Fatalf("no such fault was injected: %v", p.err)
	case o.faults.Grace > 0 || faulty && o.faults.Full:
	case strings.Contains(p.err.Error(), "map backends") && longestGap(o.after, o.sizes.MaxBackends) < len(f.Backends):
	case strings.Contains(p.err.Error(), "map services") && len(o.after) == int(o.sizes.MaxFrontends):
	default:
		t.Fatalf("there is room for %d backends in a row of %d, for %d frontends of %d: %v", longestGap(o.after, o.sizes.MaxBackends),
			len(f.Backends), len(o.after), o.sizes.MaxFrontends, p.err)
	}
}

// longestGap is the longest run of slots that no frontend has.
func longestGap(force map[l4.Addr]held, size uint32) int {
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
func checkDeath(t *rapid.T, before, after map[l4.Addr]held, want []datapath.Frontend, prune bool) {
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
