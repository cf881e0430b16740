package plan

import (
	"reflect"
	"strings"
	"testing"
)

// TestSite: the contents alone decide where pages are found.
func TestSite(t *testing.T) {
	s, errs := New(map[string]string{
		"README.md":      "# strait\n",
		"SECURITY.md":    "# Security\n",
		"test/README.md": "# Tests\n",
		"docs/README.md": "# Documentation\n## Start\n[Try it](../README.md#try)\n" +
			"## Use\n| [ui.md](ui.md) | [DNS](ui.md#dns) [keys](security.md) [promises](../SECURITY.md) | [elsewhere](https://x.invalid/ui.md)\n" +
			"## Nothing\n## Change\n[test](../test/README.md) again [ui.md](ui.md) [why](decisions/README.md)\n",
		"docs/ui.md":               "text\n# Look at `it`\n",
		"docs/security.md":         "# Security\n",
		"docs/decisions/README.md": "# Decisions\n",
		"docs/decisions/faults.md": "# Faults\n",
		"test/sim/README.md":       "# Costs\n",
	})
	if len(errs) > 0 {
		t.Fatal(errs)
	}
	want := []Section{
		{"Start", []string{"README.md", "docs/README.md"}},
		{"Use", []string{"docs/ui.md", "docs/security.md", "SECURITY.md"}},
		{"Change", []string{"test/README.md", "docs/decisions/README.md"}},
	}
	if !reflect.DeepEqual(s.Sections, want) {
		t.Errorf("the sections are\n%v, want\n%v", s.Sections, want)
	}
	for source, want := range map[string]Page{
		"README.md":                {URL: "index.html", Title: "strait", Label: "What strait is"},
		"docs/README.md":           {URL: "contents.html", Title: "Documentation", Label: "What do you want to do?"},
		"docs/ui.md":               {URL: "ui.html", Title: "Look at it", Label: "Look at it"},
		"docs/security.md":         {URL: "security.html", Title: "Security", Label: "Keys"},
		"SECURITY.md":              {URL: "project/security.html", Title: "Security", Label: "Promises"},
		"docs/decisions/README.md": {URL: "decisions.html", Title: "Decisions", Label: "Why", Under: []string{"docs/decisions/faults.md"}},
		"docs/decisions/faults.md": {URL: "decisions/faults.html", Title: "Faults", Label: "Faults", Parent: "docs/decisions/README.md"},
		"test/sim/README.md":       {URL: "project/test/sim.html", Title: "Costs", Label: "Costs", Parent: "test/README.md"},
	} {
		got := s.Pages[source]
		got.Source, got.Text = "", ""
		if !reflect.DeepEqual(got, want) {
			t.Errorf("%s is\n%+v, want\n%+v", source, got, want)
		}
	}
}

// TestLost: a page that people would not find is an error, and so is a site without a beginning.
func TestLost(t *testing.T) {
	_, errs := New(map[string]string{"README.md": "", "docs/README.md": "", "docs/lost.md": "", "bpf/README.md": ""})
	if len(errs) != 2 || !strings.HasPrefix(errs[0].Error(), "bpf/README.md: ") || !strings.HasPrefix(errs[1].Error(), "docs/lost.md: ") {
		t.Errorf("the errors are %v", errs)
	}
	if _, errs := New(nil); len(errs) != 2 {
		t.Errorf("without pages, the errors are %v", errs)
	}
}

func TestOrder(t *testing.T) {
	for _, c := range []struct {
		names, want, latest string
	}{
		{"built", "built", "built"},
		{"v0.2.0 v0.10.0 v0.9.1", "v0.10.0 v0.9.1 v0.2.0", "v0.10.0"},
		{"v0.1.0 v0.2.0-rc.1 built", "v0.2.0-rc.1 v0.1.0 built", "v0.1.0"},
		{"v0.2.0-rc.1 built", "v0.2.0-rc.1 built", "v0.2.0-rc.1"},
		{"built another", "another built", "built"},
		{"v0.1.0-3-gabcdef v0.1.0", "v0.1.0 v0.1.0-3-gabcdef", "v0.1.0"},
	} {
		got := Order(strings.Fields(c.names), "built")
		if strings.Join(got.Versions, " ") != c.want || got.Latest != c.latest {
			t.Errorf("%s: got %+v", c.names, got)
		}
	}
}

func TestCheckVersion(t *testing.T) {
	for name, good := range map[string]bool{
		"v1.2.3": true, "dev": true, "c66f5b7-dirty": true, "v1.0.0+b": true,
		"": false, "latest": false, "..": false, "a/b": false, "-x": false, ".x": false, "a b": false,
	} {
		if err := CheckVersion(name); (err == nil) != good {
			t.Errorf("%q: %v", name, err)
		}
	}
}
