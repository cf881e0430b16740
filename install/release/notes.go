package release

import (
	"cmp"
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strings"

	"golang.org/x/mod/semver"
)

// Section returns what the changelog has about the release. A preview can be part of the section of
// its release, or of what is not released yet.
func (r Release) Section(changelog string) (string, error) {
	names := []string{r.Number()}
	if r.Preview() {
		names = append(names, strings.TrimPrefix(strings.TrimSuffix(r.Version, semver.Prerelease(r.Version)), "v"), "Unreleased")
	}
	for _, name := range names {
		if text := section(changelog, name); text != "" {
			return text, nil
		}
	}
	return "", fmt.Errorf("CHANGELOG.md has no section ## [%s] with text: write what changed for people, above the older releases", strings.Join(names, "] or ## ["))
}

// section returns the text below a heading "## [NAME] - DATE", up to the next one.
func section(changelog, name string) string {
	_, rest, found := strings.Cut("\n"+changelog, "\n## ["+name+"]")
	if !found {
		return ""
	}
	_, rest, _ = strings.Cut(rest, "\n") // of the heading, a date is left
	text, _, _ := strings.Cut("\n"+rest, "\n## ")
	return strings.TrimSpace(text)
}

// History is what git knows of a release; the zero History if there is no git.
type History struct {
	// Since is the tag of the release before; empty if this is the first.
	Since    string
	Subjects []string
}

// relative matches links to pages of the repository, which lead nowhere where notes are read.
var relative = regexp.MustCompile(`\[([^\]]+)\]\((?:[^():]|\n)+\)`)

// Notes returns the release notes: what changed for people, where the files come from, and all
// commits.
func (r Release) Notes(changes, digest string, h History) []byte {
	var out strings.Builder
	fmt.Fprintf(&out, "# strait %s\n\n%s\n\n## Get it\n\n", r.Version, relative.ReplaceAllString(changes, "$1"))
	fmt.Fprintf(&out, "- Image: `%s:%s@%s`\n- Chart: `helm install strait %s --version %s --namespace strait-system --create-namespace`\n",
		r.Image(), r.Version, digest, r.Charts(), r.Number())
	fmt.Fprintf(&out, "- Programs, manifests, bills of materials and checksums: %s\n", r.URL)
	if r.Revision != "" {
		fmt.Fprintf(&out, "- Source: commit %s\n", r.Revision)
	}
	switch {
	case len(h.Subjects) == 0:
		out.WriteString("\nThis was built without git, so no commits are listed.\n")
	case h.Since == "":
		fmt.Fprintf(&out, "\nThis is the first release, of %d commits.\n", len(h.Subjects))
	default:
		fmt.Fprintf(&out, "\n## Commits since %s\n%s", h.Since, commits(h.Subjects))
	}
	return []byte(out.String())
}

// commits lists subjects by the folder that they begin with, the newest first.
func commits(subjects []string) string {
	by := map[string][]string{}
	for _, s := range subjects {
		folder, _, found := strings.Cut(s, ": ")
		if !found || strings.Contains(folder, " ") && !strings.Contains(folder, ", ") {
			folder = "other"
		}
		first, _, _ := strings.Cut(folder, ",")
		first, _, _ = strings.Cut(first, "/")
		by[first] = append(by[first], s)
	}
	folders := slices.SortedFunc(maps.Keys(by), func(a, b string) int {
		if a == "other" || b == "other" {
			return cmp.Compare(map[bool]int{true: 1}[a == "other"], map[bool]int{true: 1}[b == "other"])
		}
		return cmp.Compare(a, b)
	})
	var out strings.Builder
	for _, f := range folders {
		fmt.Fprintf(&out, "\n### %s\n\n", f)
		for _, s := range by[f] {
			fmt.Fprintf(&out, "- %s\n", s)
		}
	}
	return out.String()
}
