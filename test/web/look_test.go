package web

import (
	_ "embed"
	"fmt"
	"slices"
	"strings"

	"github.com/chromedp/cdproto/accessibility"
	"github.com/chromedp/chromedp"
	"github.com/chromedp/chromedp/kb"
)

//go:embed testdata/contrast.js
var contrast string

// readable checks a view at the size of a desk and of a phone, in light and dark: contrast, names for
// who cannot see, headings, and that nothing is wider than the screen.
func (b *tab) readable(view string) {
	b.Helper()
	for _, scheme := range []string{"light", "dark"} {
		for _, width := range []int64{1280, 360} {
			b.do(b.size(width, 800), b.colours(scheme))
			for _, wrong := range value[[]string](b, contrast) {
				b.Errorf("%s, %s, %d wide: %s", view, scheme, width, wrong)
			}
			if over := value[int](b, fmt.Sprintf(`document.documentElement.scrollWidth - %d`, width)); over > 0 {
				b.Errorf("%s is %d pixels wider than a screen of %d", view, over, width)
			}
		}
	}
	b.do(b.size(1280, 900), b.colours("light"))
	b.named(view)
	b.headed(view)
}

// needName are the roles of what must have a name.
var needName = []string{"button", "link", "textbox", "searchbox", "combobox", "checkbox", "spinbutton", "region", "table", "navigation", "columnheader"}

// named wants a name for each thing that can be used, or that has a place in the list of landmarks.
func (b *tab) named(view string) {
	b.Helper()
	tree, err := chromedp.Call(b.ctx, accessibility.GetFullAXTree, accessibility.GetFullAXTreeParams{})
	if err != nil {
		b.Fatal(err)
	}
	count := 0
	for _, n := range tree.Nodes {
		if n.Ignored || n.Role == nil {
			continue
		}
		role := strings.Trim(string(n.Role.Value), `"`)
		if !slices.Contains(needName, role) {
			continue
		}
		count++
		if n.Name == nil || strings.Trim(string(n.Name.Value), `" `) == "" {
			b.Errorf("%s: a %s has no name", view, role)
		}
	}
	if count < 4 {
		b.Errorf("%s: only %d things can be used", view, count)
	}
}

// headed wants one first heading, and none that skips a level.
func (b *tab) headed(view string) {
	b.Helper()
	levels := value[[]int](b, `[...document.querySelectorAll('h1,h2,h3,h4')].map(h => +h.tagName[1])`)
	for i, l := range levels {
		if i == 0 && l != 1 || i > 0 && (l == 1 || l > levels[i-1]+1) {
			b.Errorf("%s: the headings have the levels %v", view, levels)
			break
		}
	}
	if title := value[string](b, `document.title`); !strings.HasSuffix(title, " · strait") {
		b.Errorf("%s: the title is %q", view, title)
	}
}

// keys goes through the view with the Tab key alone, and returns what had the focus. Each must show that
// it has it.
func (b *tab) keys(view string, most int) (names []string) {
	b.Helper()
	b.do(run(`document.activeElement.blur()`))
	for range most {
		b.do(chromedp.KeyEvent(kb.Tab))
		at := value[[]string](b, `(() => { const e = document.activeElement, s = getComputedStyle(e);
			return [e.tagName, (e.innerText || e.ariaLabel || e.id || '').trim(), s.outlineStyle + ' ' + s.outlineWidth]; })()`)
		if at[0] == "BODY" {
			break
		}
		if strings.HasPrefix(at[2], "none") || strings.HasSuffix(at[2], " 0px") {
			b.Errorf("%s: %s %q has the focus and does not show it: outline %s", view, at[0], at[1], at[2])
		}
		names = append(names, fmt.Sprintf("%s %s", at[0], at[1]))
	}
	return names
}
