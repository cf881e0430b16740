package release

import (
	"strings"
	"testing"
)

const changelog = `# Changelog

## [Unreleased]

- next

## [1.2.3] - 2026-12-01

### Added

- this

## [1.2.2] - 2026-11-01

- before

## [1.2.1]

`

// TestSection: a release has a section of its own; a preview can be part of that of its release, or
// of what is not released.
func TestSection(t *testing.T) {
	for version, want := range map[string]string{
		"v1.2.3":      "### Added\n\n- this",
		"v1.2.3-rc.1": "### Added\n\n- this",
		"v1.2.2":      "- before",
		"v1.3.0-rc.1": "- next",
		"v1.3.0":      "no section ## [1.3.0]",
		"v1.2.1":      "no section ## [1.2.1]", // it is empty
		"v1.2":        "no section ## [1.2]",
	} {
		got, err := Release{Version: version}.Section(changelog)
		if err != nil {
			got = err.Error()
		}
		if got != want && (err == nil || !strings.Contains(got, want)) {
			t.Errorf("%s: %q, want %q", version, got, want)
		}
	}
	if _, err := (Release{Version: "v1.3.0-rc.1"}).Section("# Changelog\n"); err == nil || !strings.Contains(err.Error(), "## [1.3.0-rc.1] or ## [1.3.0] or ## [Unreleased]") {
		t.Errorf("an empty changelog: %v", err)
	}
}

func TestNotes(t *testing.T) {
	r := sample()
	notes := string(r.Notes("- [this](docs/a.md#b), [that](https://x.invalid/y)", "sha256:12", History{Since: "v1.2.2", Subjects: []string{
		"docs: say it", "Merge branch x", "datapath/socklb: refuse y", "cli, docs: show z", "datapath: load it",
	}}))
	for _, want := range []string{
		"# strait v1.2.3-rc.1\n\n- this, [that](https://x.invalid/y)\n", "`registry.example/team/strait:v1.2.3-rc.1@sha256:12`",
		"helm install strait oci://registry.example/team/charts/strait --version 1.2.3-rc.1", "commit abc",
		"## Commits since v1.2.2\n\n### cli\n\n- cli, docs: show z\n\n### datapath\n\n- datapath/socklb: refuse y\n- datapath: load it\n\n" +
			"### docs\n\n- docs: say it\n\n### other\n\n- Merge branch x\n",
	} {
		if !strings.Contains(notes, want) {
			t.Errorf("no %q in\n%s", want, notes)
		}
	}
	if first := string(r.Notes("", "", History{Subjects: []string{"a: b", "c: d"}})); !strings.Contains(first, "the first release, of 2 commits") || strings.Contains(first, "a: b") {
		t.Errorf("the first release:\n%s", first)
	}
	if none := string(r.Notes("", "", History{})); !strings.Contains(none, "without git") {
		t.Errorf("without git:\n%s", none)
	}
}
