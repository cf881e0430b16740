package pages

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

const root = "../.."

// TestPages checks the pages of the repository.
func TestPages(t *testing.T) {
	all, err := Load(os.DirFS(root))
	if err != nil {
		t.Fatal(err)
	}
	for _, wrong := range Check(all, func(p string) bool {
		_, err := os.Stat(filepath.Join(root, p))
		return err == nil
	}) {
		t.Error(wrong)
	}
	for _, s := range Suites {
		if len(Of(all, s)) == 0 {
			t.Errorf("no page has a block for the suite %q: remove the suite", s)
		}
	}
}

// TestCheck wants each fault found in a page that has only that one.
func TestCheck(t *testing.T) {
	const f = "```"
	for _, tc := range []struct{ name, text, want string }{
		{"nothing", "# A\n\n<!-- run: kube -->\n" + f + "sh\nls\n" + f + "\n\n" + f + "yaml\na: b\n" + f + "\n[a](#a) [b](b.md#b-of-it) [c](https://x.invalid/y)\n", ""},
		{"no language", f + "\nls\n" + f + "\n", `language ""`},
		{"an indented block", "text\n\n    ls\n", "indented"},
		{"an indented line of a list", "- text\n\n    more\n", ""},
		{"commands that no test executes", f + "sh\nls\n" + f + "\n", "no test executes"},
		{"an example", "<!-- example: deletes all -->\n" + f + "sh\nls\n" + f + "\n", ""},
		{"a comment too far above", "<!-- example: deletes all -->\n\n" + f + "sh\nls\n" + f + "\n", "no test executes"},
		{"an unknown suite", "<!-- run: moon -->\n" + f + "sh\nls\n" + f + "\n", `"moon"`},
		{"data to execute", "<!-- run: kube -->\n" + f + "yaml\na: b\n" + f + "\n", "only blocks of sh"},
		{"output alone", "<!-- run: kube -->\n" + f + "console\nout\n" + f + "\n", "nothing to execute"},
		{"a link to a missing file", "[c](c.md)\n", "there is no d/c.md"},
		{"a link to a missing heading", "[b](b.md#c)\n", "no heading #c"},
		{"a link in a block", f + "text\n[c](c.md)\n" + f + "\n", ""},
	} {
		pages := []Page{{"d/a.md", tc.text}, {"d/b.md", "## `B` of it\n"}}
		got := Check(pages, func(p string) bool { return p == "d/a.md" || p == "d/b.md" })
		if tc.want == "" && len(got) > 0 || tc.want != "" && (len(got) != 1 || !strings.Contains(got[0], tc.want)) {
			t.Errorf("%s: got %q, want one with %q", tc.name, got, tc.want)
		}
	}
}

func TestScript(t *testing.T) {
	p := Page{"a.md", "<!-- run: demo -->\n```console\n# strait status\nall is well\n# cat <<E\n# E\n```\n"}
	got := Of([]Page{p}, Demo)
	if len(got) != 1 || got[0].Script() != "strait status\ncat <<E\nE\n" || got[0].Line != 2 {
		t.Errorf("got %+v", got)
	}
	if other := Of([]Page{p}, Kube); len(other) > 0 {
		t.Errorf("another suite got %+v", other)
	}
}

func TestHeadings(t *testing.T) {
	got := headings("# STR1005: a manifest isn't `YAML`\n```text\n# no\n```\n## A-b\n## A-b\n")
	if want := []string{"str1005-a-manifest-isnt-yaml", "a-b", "a-b-1"}; !slices.Equal(got, want) {
		t.Errorf("got %q, want %q", got, want)
	}
}
