package arch

import (
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"path"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"
)

// The ephemeral range of Linux (net.ipv4.ip_local_port_range). The kernel gives these ports to outgoing
// connections, so a test that binds one of them fails now and then on a busy machine.
const firstEphemeral, lastEphemeral = 32768, 60999

// fiveDigits finds numbers that can be such a port, and not a part of a longer number.
var fiveDigits = regexp.MustCompile(`(?:^|[^0-9A-Za-z_.])([3-6][0-9]{4})(?:$|[^0-9A-Za-z_])`)

// isTestCode reports whether a file belongs to the tests, or to a program that only they run. This
// package does not count: it names ports, and listens on none.
func isTestCode(file string) bool {
	if strings.HasPrefix(file, "test/arch/") {
		return false
	}
	for _, folder := range []string{"test/", "demo/", "internal/testutil/", "internal/fabric/"} {
		if strings.HasPrefix(file, folder) {
			return true
		}
	}
	return strings.HasSuffix(file, "_test.go") || path.Ext(file) == ".sh" || slices.Contains(strings.Split(file, "/"), "testdata")
}

// checkPorts finds numbers in the files of tests that can be fixed ports in the ephemeral range. It is
// closed by default: it does not ask whether a number is bound, so allowed says which are not. It reports
// rows of allowed that nothing needs, too.
func checkPorts(root fs.FS, allowed []AllowedPort) ([]Violation, error) {
	var out []Violation
	used := make([]bool, len(allowed))
	err := fs.WalkDir(root, ".", func(p string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		if d.IsDir() {
			if p != "." && d.Name()[0] == '.' || p == "bin" {
				return fs.SkipDir
			}
			return nil
		}
		if !isTestCode(p) || !d.Type().IsRegular() {
			return nil
		}
		text, err := fs.ReadFile(root, p)
		if err != nil || !utf8.Valid(text) {
			return err
		}
		for _, found := range portsOf(p, string(text)) {
			i := slices.IndexFunc(allowed, func(a AllowedPort) bool {
				return (a.Path == p || strings.HasPrefix(p, a.Path+"/")) && slices.Contains(a.Ports, found.port)
			})
			if i >= 0 {
				used[i] = true
				continue
			}
			out = append(out, Violation{fmt.Sprintf("%s:%d", p, found.line), "ephemeral port", fmt.Sprintf(
				"%d is in the ephemeral range, where any outgoing connection can have it: listen on port 0 and read it back, or take one below %d; "+
					"if nothing binds it, add a row to Ports in test/arch/table.go", found.port, firstEphemeral)})
		}
		return nil
	})
	for i, a := range allowed {
		if !used[i] {
			out = append(out, Violation{"test/arch/table.go", "ephemeral port", fmt.Sprintf("the row %s %v of Ports is not needed: remove it", a.Path, a.Ports)})
		}
	}
	return out, err
}

// foundPort is a number that can be an ephemeral port, and where it is.
type foundPort struct{ line, port int }

// portsOf looks at a Go file's numbers and strings, and at every line of other files. Go files that do
// not parse count as text.
func portsOf(file, text string) (out []foundPort) {
	fset := token.NewFileSet()
	syntax, err := parser.ParseFile(fset, file, text, parser.SkipObjectResolution)
	if path.Ext(file) != ".go" || err != nil {
		n := 0
		for line := range strings.Lines(text) {
			n++
			out = append(out, portsIn(n, line)...)
		}
		return out
	}
	ast.Inspect(syntax, func(n ast.Node) bool {
		lit, ok := n.(*ast.BasicLit)
		if !ok {
			return true
		}
		line := fset.Position(lit.Pos()).Line
		switch lit.Kind {
		case token.INT: // decimal ones, of however many digits and underscores
			if lit.Value[0] != '0' {
				out = append(out, portsIn(line, strings.ReplaceAll(lit.Value, "_", ""))...)
			}
		case token.STRING:
			for i, part := range strings.Split(lit.Value, "\n") {
				out = append(out, portsIn(line+i, part)...)
			}
		}
		return true
	})
	return out
}

// portsIn finds the ports in one line.
func portsIn(line int, text string) (out []foundPort) {
	for {
		at := fiveDigits.FindStringSubmatchIndex(text)
		if at == nil {
			return out
		}
		if port, err := strconv.Atoi(text[at[2]:at[3]]); err == nil && port >= firstEphemeral && port <= lastEphemeral {
			out = append(out, foundPort{line, port})
		}
		text = text[at[3]:] // what separates two numbers belongs to both
	}
}
