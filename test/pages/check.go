package pages

import (
	"fmt"
	"net/url"
	"path"
	"regexp"
	"slices"
	"strings"
	"unicode"
)

// languages are those that a code block can have.
var languages = []string{"sh", "console", "text", "yaml", "ini", "json", "promql", "go", "corefile"}

// Check returns what is wrong with the pages: blocks without a language, commands that nothing
// executes and that are not marked as an example, and links that lead nowhere. exists reports
// whether the repository has a file or a folder.
func Check(pages []Page, exists func(string) bool) (out []string) {
	anchors := map[string][]string{}
	for _, p := range pages {
		anchors[p.Path] = headings(p.Text)
	}
	for _, p := range pages {
		for _, b := range Blocks(p) {
			if why := b.wrong(); why != "" {
				out = append(out, b.Place()+": "+why)
			}
		}
		for _, l := range prose(p.Text) {
			n, line := l.number, l.text
			if strings.HasPrefix(line, "    ") && strings.TrimSpace(line) != "" && !inList(p.Text, n) {
				out = append(out, fmt.Sprintf("%s:%d: an indented code block: fence it, with a language", p.Path, n))
			}
			for _, m := range link.FindAllStringSubmatch(line, -1) {
				if why := follow(p.Path, m[1], anchors, exists); why != "" {
					out = append(out, fmt.Sprintf("%s:%d: link %s: %s", p.Path, n, m[1], why))
				}
			}
		}
	}
	slices.Sort(out)
	return out
}

func (b Block) wrong() string {
	switch {
	case !slices.Contains(languages, b.Lang):
		return fmt.Sprintf("the language %q of the code block is none of %s", b.Lang, strings.Join(languages, ", "))
	case b.Run != "" && !slices.Contains(Suites, b.Run):
		return fmt.Sprintf("no suite is called %q; use one of %s", b.Run, strings.Join(Suites, ", "))
	case b.Command() && b.Run == "" && b.Example == "":
		return "commands that no test executes: put <!-- run: SUITE --> on the line above, or <!-- example: REASON -->"
	case !b.Command() && b.Run != "":
		return "only blocks of sh and console can be executed"
	case b.Run != "" && strings.TrimSpace(b.Script()) == "":
		return "nothing to execute; commands in console begin with \"# \""
	}
	return ""
}

var link = regexp.MustCompile(`\]\(([^)\s]+)\)`)

// follow says what is wrong with a link from a page; "" if it leads somewhere. Links to other sites
// are not followed.
func follow(from, to string, anchors map[string][]string, exists func(string) bool) string {
	u, err := url.Parse(to)
	switch {
	case err != nil:
		return err.Error()
	case u.Scheme != "":
		return ""
	}
	target := from
	if u.Path != "" {
		target = path.Join(path.Dir(from), u.Path)
	}
	if !exists(target) {
		return "there is no " + target
	}
	if u.Fragment != "" && !slices.Contains(anchors[target], u.Fragment) {
		return fmt.Sprintf("%s has no heading #%s", target, u.Fragment)
	}
	return ""
}

// headings returns the anchors of a page's headings, as GitHub makes them.
func headings(text string) (out []string) {
	seen := map[string]int{}
	for _, l := range prose(text) {
		title := strings.TrimLeft(l.text, "#")
		if title == l.text || !strings.HasPrefix(title, " ") {
			continue
		}
		anchor := strings.Map(func(r rune) rune {
			switch {
			case unicode.IsLetter(r), unicode.IsDigit(r), r == '-', r == '_':
				return unicode.ToLower(r)
			case r == ' ':
				return '-'
			}
			return -1
		}, strings.TrimSpace(title))
		if n := seen[anchor]; n > 0 {
			out = append(out, fmt.Sprintf("%s-%d", anchor, n))
		} else {
			out = append(out, anchor)
		}
		seen[anchor]++
	}
	return out
}

// line is a line of a page; the first has number 1.
type line struct {
	number int
	text   string
}

// prose returns a page's lines outside code blocks.
func prose(text string) (out []line) {
	inside := false
	for i, l := range strings.Split(text, "\n") {
		if fence.MatchString(l) {
			inside = !inside
		} else if !inside {
			out = append(out, line{i + 1, l})
		}
	}
	return out
}

var item = regexp.MustCompile(`^ *([-*]|\d+\.) `)

// inList reports whether an indented line goes on with a list item above it.
func inList(text string, n int) bool {
	lines := strings.Split(text, "\n")
	for i := n - 1; i >= 0; i-- {
		switch line := lines[i]; {
		case item.MatchString(line):
			return true
		case strings.TrimSpace(line) != "" && !strings.HasPrefix(line, " "):
			return false
		}
	}
	return false
}
