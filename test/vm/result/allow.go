package result

import (
	"fmt"
	"path"
	"slices"
	"strings"
)

// Allowed is one line of the list of allowed skips: kernels, test, why.
type Allowed struct {
	// Kernels are series such as 5.10; "*" means all.
	Kernels []string
	// Test is PACKAGE/TEST, as the report prints it; "*" matches one element or a part of it.
	Test, Why string
}

// ParseAllowed parses the list: one skip per line, with # comments.
func ParseAllowed(text string) (out []Allowed, err error) {
	for i, line := range strings.Split(text, "\n") {
		if line = strings.TrimSpace(line); line == "" || line[0] == '#' {
			continue
		}
		f := strings.Fields(line)
		if len(f) < 3 {
			return nil, fmt.Errorf("line %d: %q: want kernels (5.10,6.1 or *), PACKAGE/TEST and the reason", i+1, line)
		}
		if _, err := path.Match(f[1], ""); err != nil {
			return nil, fmt.Errorf("line %d: test %q: %w", i+1, f[1], err)
		}
		out = append(out, Allowed{strings.Split(f[0], ","), f[1], strings.Join(f[2:], " ")})
	}
	return out, nil
}

// on reports whether an entry applies to a kernel version.
func (a Allowed) on(version string) bool {
	return slices.ContainsFunc(a.Kernels, func(k string) bool {
		return k == "*" || version == k || strings.HasPrefix(version, k+".")
	})
}

// names reports whether an entry matches a test.
func (a Allowed) names(test string) bool {
	ok, err := path.Match(a.Test, test)
	return ok && err == nil
}

// Unused returns the entries that no machine needed, although a machine that an entry applies to
// ran the package. An entry that is not needed would hide the next skip.
func Unused(list []Allowed, machines []Machine) (out []Allowed) {
	for _, a := range list {
		applies, used := false, false
		for _, m := range machines {
			if !a.on(m.Kernel) || m.Problem != "" {
				continue
			}
			for _, p := range m.Packages {
				applies = applies || strings.HasPrefix(a.Test, p.Name+"/")
				used = used || slices.ContainsFunc(p.Skipped, func(s Skip) bool { return a.names(p.Name + "/" + s.Test) })
			}
		}
		if applies && !used {
			out = append(out, a)
		}
	}
	return out
}

// allows reports whether a skip is on the list.
func allows(list []Allowed, kernel, test string) bool {
	return slices.ContainsFunc(list, func(a Allowed) bool { return a.names(test) && a.on(kernel) })
}
