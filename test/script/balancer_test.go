package script

import (
	"fmt"
	"net/netip"
	"os"
	"path/filepath"
	"strconv"
	"strings"

	"strait.io/strait/datapath"
	"strait.io/strait/internal/l4"
	"strait.io/strait/internal/problem"
)

func cmdCIDRs(w *world, args []string) error {
	w.cidrs = nil
	for _, a := range args {
		p, err := netip.ParsePrefix(a)
		if err != nil {
			return err
		}
		w.cidrs = append(w.cidrs, p)
	}
	return nil
}

func cmdMaps(w *world, args []string) error {
	frontends, err1 := strconv.ParseUint(args[0], 10, 32)
	backends, err2 := strconv.ParseUint(args[1], 10, 32)
	if err1 != nil || err2 != nil {
		return fmt.Errorf("want two numbers, got %q", args)
	}
	w.size = sizes{uint32(frontends), uint32(backends)}
	return nil
}

func cmdDesired(w *world, args []string) error {
	text, err := os.ReadFile(filepath.Join(w.dir, args[1]))
	if err != nil {
		return err
	}
	var want []datapath.Frontend
	for line := range strings.Lines(string(text)) {
		f, err := parseFrontend(line)
		if err != nil {
			return fmt.Errorf("%s: %q: %w", args[1], line, err)
		}
		want = append(want, f)
	}
	if w.alone[args[0]] == nil {
		w.alone[args[0]] = w.open(w.size)
	}
	return problem.Strict(w.alone[args[0]].Reconcile(want, true))
}

// parseFrontend is the inverse of formatFrontend.
func parseFrontend(line string) (f datapath.Frontend, err error) {
	line, affinity, _ := strings.Cut(strings.TrimSpace(line), " affinity ")
	if affinity != "" {
		n, err := strconv.ParseUint(strings.TrimSuffix(affinity, "s"), 10, 32)
		if err != nil {
			return f, err
		}
		f.AffinitySeconds = uint32(n)
	}
	words := strings.Fields(line)
	if len(words) < 2 || words[1] != "->" {
		return f, fmt.Errorf("want ADDRESS -> BACKEND*WEIGHT…")
	}
	if f.Addr, err = l4.Parse(words[0]); err != nil {
		return f, err
	}
	for _, word := range words[2:] {
		at, weight, _ := strings.Cut(word, "*")
		b, err := netip.ParseAddrPort(at)
		if err != nil {
			return f, err
		}
		n, err := strconv.ParseUint(weight, 10, 32)
		if err != nil {
			return f, err
		}
		f.Backends = append(f.Backends, datapath.Backend{IP: b.Addr(), Port: b.Port(), Weight: uint32(n)})
	}
	return f, nil
}

func formatFrontend(f datapath.Frontend) string {
	s := f.Addr.String() + " ->"
	for _, b := range f.Backends {
		s += fmt.Sprintf(" %s*%d", b.AddrPort(), b.Weight)
	}
	if f.AffinitySeconds > 0 {
		s += fmt.Sprintf(" affinity %ds", f.AffinitySeconds)
	}
	return s
}

func cmdFrontends(w *world, args []string) error {
	fs, err := w.held(args[0])
	if err != nil {
		return err
	}
	for _, f := range fs {
		fmt.Fprintln(&w.out, formatFrontend(f))
	}
	return nil
}

// held is what a load balancer holds: one alone, or a node's.
func (w *world) held(name string) ([]datapath.Frontend, error) {
	if lb := w.alone[name]; lb != nil {
		return lb.Frontends()
	}
	n, err := w.node(name)
	if err != nil {
		return nil, err
	}
	return w.frontends(n)
}
