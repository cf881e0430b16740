// Package plan decides what the documentation site has: which pages, at which addresses, and in
// which order people find them. The order is that of docs/README.md, so there is no second list.
//
// Input is the text of the repository's Markdown pages; output is a Site. It must not know how the
// pages are rendered, nor where the site is written.
package plan

import (
	"fmt"
	"maps"
	"path"
	"regexp"
	"slices"
	"strings"
)

// Contents is the page whose tables of links are the navigation: its headings are the sections.
const Contents = "docs/README.md"

// Front is the page that the site begins with.
const Front = "README.md"

// Page is one page of the site.
type Page struct {
	Source string `json:"source"` // the path of its Markdown in the repository
	URL    string `json:"url"`    // relative to the version's folder
	Title  string `json:"title"`  // of its first heading
	Label  string `json:"label"`  // in the navigation
	Text   string `json:"-"`
	// Under are the pages that the navigation shows only beside this one, as those of a folder are
	// beside the folder's README.
	Under []string `json:"under,omitempty"`
	// Parent is the page that has this one in Under.
	Parent string `json:"parent,omitempty"`
}

// Section is a part of the navigation.
type Section struct {
	Title string   `json:"title"`
	Pages []string `json:"pages"` // their sources
}

// Site is what the generator needs to know.
type Site struct {
	Sections []Section       `json:"sections"`
	Pages    map[string]Page `json:"pages"` // by source
}

// New plans the site of pages, which are texts by path. The errors name pages that could not be
// found by people: docs/README.md links to them nowhere.
func New(texts map[string]string) (Site, []error) {
	s := Site{Pages: map[string]Page{}}
	for source, text := range texts {
		title := heading(text)
		s.Pages[source] = Page{Source: source, URL: URL(source), Title: title, Label: title, Text: text}
	}
	var errs []error
	for _, source := range []string{Front, Contents} {
		if _, is := texts[source]; !is {
			errs = append(errs, fmt.Errorf("there is no %s: the site begins with it", source))
		}
	}
	s.navigate(texts[Contents])
	return s, append(errs, s.adopt()...)
}

// URL returns a page's address. A page of docs has its own path, and another one is below project,
// so that SECURITY.md and docs/security.md differ on every file system.
func URL(source string) string {
	switch source {
	case Front:
		return "index.html"
	case Contents:
		return "contents.html"
	}
	name := strings.TrimSuffix(strings.TrimSuffix(source, ".md"), "/README")
	below, of := strings.CutPrefix(name, "docs/")
	if !of {
		below = "project/" + name
	}
	return strings.ToLower(below) + ".html"
}

var (
	first   = regexp.MustCompile(`(?m)^# (.+)$`)
	section = regexp.MustCompile(`^## (.+)$`)
	link    = regexp.MustCompile(`\[([^\]]+)\]\(([^)\s]+)\)`)
)

func heading(text string) string {
	if m := first.FindStringSubmatch(text); m != nil {
		return strings.ReplaceAll(m[1], "`", "")
	}
	return ""
}

// navigate reads the sections of the contents: each page is in the section that links to it first.
func (s *Site) navigate(contents string) {
	s.Sections = []Section{{Title: "Start", Pages: []string{Front, Contents}}}
	seen := map[string]bool{Front: true, Contents: true}
	s.label(Front, "What strait is")
	s.label(Contents, "What do you want to do?")
	for text := range strings.Lines(contents) {
		if m := section.FindStringSubmatch(strings.TrimSpace(text)); m != nil {
			s.open(m[1])
			continue
		}
		for _, m := range link.FindAllStringSubmatch(text, -1) {
			source, part, _ := strings.Cut(m[2], "#")
			source = path.Join(path.Dir(Contents), source)
			if _, is := s.Pages[source]; !is || seen[source] || part != "" {
				continue
			}
			seen[source] = true
			last := &s.Sections[len(s.Sections)-1]
			last.Pages = append(last.Pages, source)
			if !strings.HasSuffix(m[1], ".md") { // the name of a file says less than the page's heading
				s.label(source, strings.ToUpper(m[1][:1])+m[1][1:])
			}
		}
	}
	s.Sections = slices.DeleteFunc(s.Sections, func(s Section) bool { return len(s.Pages) == 0 })
}

// open begins a section, or goes on with the first one, which has the same title.
func (s *Site) open(title string) {
	if title != s.Sections[0].Title {
		s.Sections = append(s.Sections, Section{Title: title})
	}
}

func (s *Site) label(source, label string) {
	if p, is := s.Pages[source]; is {
		p.Label = label
		s.Pages[source] = p
	}
}

// adopt places the pages that the contents do not name under the README of a folder above.
func (s *Site) adopt() (errs []error) {
	named := map[string]bool{}
	for _, section := range s.Sections {
		for _, source := range section.Pages {
			named[source] = true
		}
	}
	for _, source := range slices.Sorted(maps.Keys(s.Pages)) {
		if named[source] {
			continue
		}
		parent := ""
		for dir := path.Dir(source); parent == "" && dir != "." && dir != path.Dir(Contents); dir = path.Dir(dir) {
			if above := path.Join(dir, "README.md"); named[above] {
				parent = above
			}
		}
		if parent == "" {
			errs = append(errs, fmt.Errorf("%s: add a link to it to a table of %s, so that people find it", source, Contents))
			continue
		}
		above, page := s.Pages[parent], s.Pages[source]
		above.Under, page.Parent = append(above.Under, source), parent
		s.Pages[parent], s.Pages[source] = above, page
	}
	return errs
}
