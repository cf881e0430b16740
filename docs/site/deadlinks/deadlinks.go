// Package deadlinks finds what is wrong with the links of a site that was built: files and anchors
// that do not exist, and anything that a page would load from another host.
//
// Input is the files of the site; output is one line for each fault. It must not know what made the
// site, and does not follow links to other sites: it only checks their form.
package deadlinks

import (
	"fmt"
	"io/fs"
	"net/url"
	"path"
	"slices"
	"strings"

	"golang.org/x/net/html"
)

// use is a place in a page that names another file.
type use struct {
	to    string
	loads bool // the browser loads it with the page
}

// page is what a page has.
type page struct {
	ids  map[string]bool
	uses []use
}

// Check returns what is wrong, by page. A page may link to the files in beside, which are in the
// folder above the site.
func Check(site fs.FS, beside ...string) (out []string, err error) {
	files, pages := map[string]bool{}, map[string]*page{}
	err = fs.WalkDir(site, ".", func(name string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		files[name] = true
		if path.Ext(name) != ".html" {
			return nil
		}
		text, err := fs.ReadFile(site, name)
		if err != nil {
			return err
		}
		p, faults := read(string(text))
		pages[name] = p
		for _, f := range faults {
			out = append(out, name+": "+f)
		}
		return nil
	})
	if err != nil {
		return nil, err
	}
	exists := func(name string) bool {
		above, is := strings.CutPrefix(name, "../")
		return files[name] || is && slices.Contains(beside, above)
	}
	for name, p := range pages {
		for _, u := range p.uses {
			if why := follow(name, u, pages, exists); why != "" {
				out = append(out, fmt.Sprintf("%s: %s: %s", name, u.to, why))
			}
		}
	}
	slices.Sort(out)
	return out, nil
}

// attributes are those that name files, by element; true if the browser loads them with the page.
var attributes = map[string]map[string]bool{
	"a": {"href": false}, "link": {"href": true}, "script": {"src": true}, "img": {"src": true}, "source": {"src": true}, "iframe": {"src": true},
}

// read parses a page. Its own faults are anchors that it has twice, and what a strict policy
// forbids.
func read(text string) (*page, []string) {
	p := &page{ids: map[string]bool{}}
	var faults []string
	for z := html.NewTokenizer(strings.NewReader(text)); ; {
		switch z.Next() {
		case html.ErrorToken: // the end: the text is in memory
			return p, faults
		case html.StartTagToken, html.SelfClosingTagToken:
		default:
			continue
		}
		t := z.Token()
		inline := t.Data == "script" || t.Data == "style"
		for _, a := range t.Attr {
			loads, names := attributes[t.Data][a.Key]
			switch {
			case names:
				p.uses = append(p.uses, use{a.Val, loads})
				inline = false
			case a.Key == "id" && p.ids[a.Val]:
				faults = append(faults, "two elements have the id "+a.Val)
			case a.Key == "id":
				p.ids[a.Val] = true
			case a.Key == "style", strings.HasPrefix(a.Key, "on"):
				faults = append(faults, fmt.Sprintf("<%s %s=%q> is code inside the page, which its policy forbids", t.Data, a.Key, a.Val))
			}
		}
		if inline {
			faults = append(faults, fmt.Sprintf("<%s> has its text inside the page, which its policy forbids", t.Data))
		}
	}
}

// follow says what is wrong with a link; "" if it leads somewhere.
func follow(from string, u use, pages map[string]*page, exists func(string) bool) string {
	to, err := url.Parse(u.to)
	switch {
	case err != nil:
		return err.Error()
	case u.loads && (to.Scheme != "" && to.Scheme != "data" || to.Host != ""):
		return "the page would load this from another host"
	case to.Scheme == "data":
		return ""
	case to.Scheme == "https", to.Scheme == "http":
		if to.Host == "" {
			return "there is no host in it"
		}
		return ""
	case to.Scheme != "":
		return "a link of this kind leads nowhere in a browser"
	case to.Host != "" || strings.HasPrefix(to.Path, "/"):
		return "it is not relative, so it depends on where the site is"
	}
	target := from
	if to.Path != "" {
		target = path.Join(path.Dir(from), to.Path)
	}
	if !exists(target) {
		return "there is no file " + target
	}
	if p := pages[target]; to.Fragment != "" && (p == nil || !p.ids[to.Fragment]) {
		return fmt.Sprintf("%s has nothing with the id %s", target, to.Fragment)
	}
	return ""
}
