// Package docs embeds the page that explains Problems, so that `strait help STR1203` works where no
// page can be opened. Input is a Problem's code, output its section as plain text.
package docs

import (
	_ "embed"
	"strings"

	"strait.io/strait/internal/problem"
)

//go:embed problems.md
var problems string

// Problem returns the section of problems.md about a code, in Markdown; false if there is none.
func Problem(code problem.Code) (section string, found bool) {
	for _, s := range sections() {
		if strings.HasPrefix(s, string(code)+":") {
			return s, true
		}
	}
	return "", false
}

// Codes returns the codes that the page explains, in its order.
func Codes() (out []problem.Code) {
	for _, s := range sections() {
		if code, _, is := strings.Cut(s, ":"); is && strings.HasPrefix(code, "STR") {
			out = append(out, problem.Code(code))
		}
	}
	return out
}

// sections returns the sections about codes, without the mark of their headings. A section ends
// where the next heading begins.
func sections() (out []string) {
	for _, s := range strings.Split("\n"+problems, "\n### ")[1:] {
		s, _, _ = strings.Cut(s, "\n## ")
		out = append(out, strings.TrimSpace(s))
	}
	return out
}
