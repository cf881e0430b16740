package web

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io/fs"
	"maps"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/chromedp/cdproto/emulation"
	"github.com/chromedp/chromedp"
	"github.com/chromedp/chromedp/kb"

	"strait.io/strait/docs"
)

// site builds the documentation of a version as people do, into a folder of versions. It fails if
// the site has a dead link.
func site(t *testing.T, out, version string, variables ...string) {
	t.Helper()
	// Not the variables of the make that runs this test.
	args := append([]string{"-u", "MAKEFLAGS", "-u", "MAKELEVEL", "make", "--no-print-directory", "site", "VERSION=" + version, "SITE=" + out}, variables...)
	cmd := exec.Command("env", args...)
	cmd.Dir = "../.."
	said, err := cmd.CombinedOutput()
	if bytes.Contains(said, []byte("cannot build hugo")) {
		t.Skipf("Hugo cannot be built: %s", said)
	}
	if err != nil || !strings.HasSuffix(string(said), filepath.Join(out, version, "index.html")+"\n") {
		t.Fatalf("make site: %v\n%s", err, said)
	}
}

// tree returns the files of a folder.
func tree(t *testing.T, dir string) map[string]string {
	t.Helper()
	out := map[string]string{}
	err := fs.WalkDir(os.DirFS(dir), ".", func(name string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		text, err := os.ReadFile(filepath.Join(dir, name))
		out[name] = string(text)
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return out
}

// same wants two folders to have the same files.
func same(t *testing.T, what string, got, want map[string]string) {
	t.Helper()
	if len(got) != len(want) || len(want) < 50 {
		t.Errorf("%s: %d files, want the same %d", what, len(got), len(want))
	}
	for name, text := range want {
		if got[name] != text {
			t.Errorf("%s: %s differs", what, name)
		}
	}
}

// TestSite builds two versions of the documentation, and reads them in Chromium.
func TestSite(t *testing.T) {
	out := t.TempDir()
	site(t, out, "v0.1.0")
	first := tree(t, filepath.Join(out, "v0.1.0"))
	same(t, "latest, with one version", tree(t, filepath.Join(out, "latest")), first)
	t.Setenv("HUGO_TITLE", "of the person who builds")
	other := t.TempDir()
	site(t, other, "v0.1.0")
	same(t, "v0.1.0, built elsewhere", tree(t, filepath.Join(other, "v0.1.0")), first)
	site(t, other, "v0.3.0", "FILES=https://x.invalid/blob/v0.3.0")
	linksToFiles(t, first, tree(t, filepath.Join(other, "v0.3.0")))
	site(t, out, "v0.2.0")
	same(t, "v0.1.0 beside v0.2.0", tree(t, filepath.Join(out, "v0.1.0")), first)
	second := tree(t, filepath.Join(out, "v0.2.0"))
	site(t, out, "v0.1.0")
	same(t, "v0.1.0, built again", tree(t, filepath.Join(out, "v0.1.0")), first)
	same(t, "latest, after an older version was built", tree(t, filepath.Join(out, "latest")), second)
	wholeSite(t, first)
	siteList(t, out)
	t.Run("Refuses", refuses)

	server := httptest.NewServer(http.FileServer(http.Dir(out)))
	t.Cleanup(server.Close)
	b := open(t, server.URL+"/")
	b.until(`location.pathname.startsWith('/latest/')`)
	b.shows("joins Kubernetes clusters")
	b.searches(server.URL + "/latest/")
	b.readsPages(server.URL + "/latest/")
	b.copies(server.URL + "/latest/")
	b.changesVersion(server.URL)
	b.onPhone(server.URL + "/latest/")
	b.withoutScripts(server.URL + "/latest/")

	t.Run("Disk", func(t *testing.T) { // a site that was unpacked, and no server
		b := open(t, "file://"+filepath.Join(out, "v0.2.0", "ui.html"))
		b.searches("file://" + filepath.Join(out, "v0.2.0") + "/")
	})
}

// wholeSite wants a page for each Markdown file of docs, and an address for the code of each
// problem.
func wholeSite(t *testing.T, files map[string]string) {
	t.Helper()
	sources, err := filepath.Glob("../../docs/*.md")
	from, err2 := filepath.Glob("../../docs/from/*.md")
	if err != nil || err2 != nil {
		t.Fatal(err, err2)
	}
	for _, source := range append(sources, from...) {
		name := strings.TrimPrefix(strings.TrimSuffix(source, ".md"), "../../docs/") + ".html"
		if name == "README.html" {
			name = "contents.html"
		}
		if files[name] == "" {
			t.Errorf("%s has no page %s", source, name)
		}
	}
	for _, code := range docs.Codes() {
		if !strings.Contains(files["problems.html"], fmt.Sprintf(`<span id="%s">`, code)) {
			t.Errorf("problems.html#%s does not exist", code)
		}
	}
}

// linksToFiles wants links to the repository's files where the build knows where they are, and only
// then.
func linksToFiles(t *testing.T, without, with map[string]string) {
	t.Helper()
	for name, file := range map[string]string{"kubernetes.html": "install/manifests/strait.yaml", "metrics.html": "install/chart/strait/monitoring/alerts.yaml", "project/test.html": "test/arch"} {
		if !strings.Contains(without[name], fmt.Sprintf(`<span class="file" title="%s, in`, file)) {
			t.Errorf("%s does not name the file %s", name, file)
		}
		if !strings.Contains(with[name], fmt.Sprintf(`href="https://x.invalid/blob/v0.3.0/%s"`, file)) {
			t.Errorf("%s does not link to the file %s", name, file)
		}
	}
}

// siteList wants the lists of versions to have both, for programs and for people.
func siteList(t *testing.T, out string) {
	t.Helper()
	var got struct {
		Latest   string
		Versions []string
	}
	text, err := os.ReadFile(filepath.Join(out, "versions.json"))
	if err == nil {
		err = json.Unmarshal(text, &got)
	}
	if err != nil || got.Latest != "v0.2.0" || !slices.Equal(got.Versions, []string{"v0.2.0", "v0.1.0"}) {
		t.Errorf("versions.json has %s, %v", text, err)
	}
	page, err := os.ReadFile(filepath.Join(out, "versions.html"))
	for _, v := range []string{"latest", "v0.1.0", "v0.2.0"} {
		if err != nil || !strings.Contains(string(page), `href="`+v+`/index.html"`) {
			t.Errorf("versions.html does not link to %s: %v", v, err)
		}
	}
}

// refuses wants each fault of the pages named, and what was built before left as it is.
func refuses(t *testing.T) {
	out := t.TempDir()
	build := func(more map[string]string) (string, error) {
		source := t.TempDir()
		files := map[string]string{
			"README.md": "# strait\n", "docs/README.md": "# Documentation\n[a](a.md)\n", "docs/a.md": "# A\n\n## Part\n\n[part](#part) ![dot](images/dot.svg)\n",
			"docs/images/dot.svg": "<svg xmlns='http://www.w3.org/2000/svg'/>",
		}
		maps.Copy(files, more)
		for name, text := range files {
			file := filepath.Join(source, name)
			if err := os.MkdirAll(filepath.Dir(file), 0o755); err != nil {
				t.Fatal(err)
			}
			if err := os.WriteFile(file, []byte(text), 0o644); err != nil {
				t.Fatal(err)
			}
		}
		cmd := exec.Command("go", "run", "-buildvcs=false", "./docs/site", "-hugo", "bin/tools/hugo", "-source", source, "-out", out, "-version", "v1.0.0")
		cmd.Dir = "../.."
		said, err := cmd.CombinedOutput()
		return string(said), err
	}
	if said, err := build(nil); err != nil {
		t.Fatalf("%v\n%s", err, said)
	}
	before := tree(t, out)
	for _, c := range []struct{ name, file, text, want string }{
		{"an anchor that does not exist", "README.md", "# strait\n[a](docs/a.md#parts)\n", "index.html: a.html#parts: a.html has nothing with the id parts"},
		{"an anchor of the page itself", "README.md", "# strait\n[a](#parts)\n", "index.html: #parts: index.html has nothing with the id parts"},
		{"a picture that does not exist", "docs/a.md", "# A\n![dot](images/dots.svg)\n", "docs/a.md: there is no picture images/dots.svg"},
		{"a picture of another host", "docs/a.md", "# A\n<img src='https://x.invalid/y.png'>\n", "the page would load this from another host"},
		{"a page that nothing leads to", "docs/b.md", "# B\n", "docs/b.md: add a link to it to a table of docs/README.md"},
	} {
		said, err := build(map[string]string{c.file: c.text})
		if err == nil || !strings.Contains(said, c.want) {
			t.Errorf("%s: %v, want %q\n%s", c.name, err, c.want, said)
		}
	}
	if after := tree(t, out); !maps.Equal(before, after) {
		t.Error("a build that failed changed what was there")
	}
}

// asks types into the search field, and returns the headings and pages of what is found.
func (b *tab) asks(query string) (found [][]string) {
	b.Helper()
	b.do(chromedp.KeyEvent(kb.Escape), run(`document.activeElement.blur()`), chromedp.KeyEvent("/"))
	b.do(run(`document.querySelector('.search input').value = ''`), chromedp.KeyEvent(query))
	b.until(fmt.Sprintf(`document.querySelector('.search input').value === %q && document.querySelector('.results [role=status]') !== null`, query))
	return value[[][]string](b, `[...document.querySelectorAll('.results a')].map(a => [a.querySelector('b').innerText, a.querySelector('span').innerText])`)
}

// searches finds a code, words of a text, and a word that is misspelt; and goes to a result by
// keys.
func (b *tab) searches(address string) {
	b.Helper()
	for _, c := range []struct{ query, heading, page string }{
		{"STR2102", "STR2102:", "Problems"},
		{"drain a node", "Drain a node, a Service or a cluster", ""},
		{"nodePrefixes", "", "Configuration"},
		{"strait_remote_cluster_rtt_seconds", "Reference", "Metrics"},
		{"allowed-ips wireguard laptop", "", "Kilo"},
		{"trobleshooting", "Troubleshooting", ""},
	} {
		found := b.asks(c.query)
		at := slices.IndexFunc(found, func(f []string) bool {
			return strings.HasPrefix(f[0], c.heading) && f[1] == c.page
		})
		if at < 0 || at > 2 {
			b.Errorf("%s: a search for %q finds %q, want %q of %q among the first three", address, c.query, found, c.heading, c.page)
		}
	}
	if found := b.asks("xyzzyplugh"); len(found) > 0 {
		b.Errorf("a search for nothing finds %q", found)
	}
	b.shows("Nothing is about")
	b.asks("STR2102")
	b.do(chromedp.KeyEvent(kb.ArrowDown), chromedp.KeyEvent(kb.Enter))
	b.until(fmt.Sprintf(`location.href.startsWith(%q) && location.hash.startsWith('#str2102-')`, address+"problems.html"))
	// The heading is on the screen, below the bar.
	b.until(`(() => { const y = document.querySelector(':target')?.getBoundingClientRect().top; return y >= document.querySelector('header').offsetHeight - 1 && y < 400; })()`)
}

// readsPages looks at pages of each kind: all pictures show, and everything can be read.
func (b *tab) readsPages(address string) {
	b.Helper()
	for _, name := range []string{"index.html", "contents.html", "problems.html", "ui.html", "benchmarks.html", "from/kilo.html", "project/architecture.html"} {
		b.do(chromedp.Navigate(address + name))
		b.readable(name)
	}
	b.do(chromedp.Navigate(address+"ui.html"), run(`document.querySelectorAll('img').forEach(i => { i.loading = 'eager'; })`))
	b.until(`document.images.length >= 4 && [...document.images].every(i => i.complete && i.naturalWidth > 0)`)
	b.do(chromedp.Navigate(address + "problems.html#STR2102"))
	b.until(`document.getElementById('STR2102').getBoundingClientRect().top < 400`)
	if names := b.keys("problems.html", 12); len(names) < 12 {
		b.Errorf("only %q can be reached by keys", names)
	}
}

// changesVersion goes to the same page of an older version, which says that it is not the latest.
func (b *tab) changesVersion(address string) {
	b.Helper()
	b.do(chromedp.Navigate(address + "/latest/from/kilo.html"))
	b.until(`document.querySelector('.version select')?.value === 'latest'`)
	if old := value[bool](b, `document.querySelector('.banner') !== null`); old {
		b.Error("the latest version says that it is not")
	}
	b.do(run(`{ const s = document.querySelector('.version select'); s.value = 'v0.1.0'; s.dispatchEvent(new Event('change')); }`))
	b.until(`location.pathname === '/v0.1.0/from/kilo.html'`)
	b.shows("The latest version is v0.2.0")
	b.readable("an older version")
	b.do(chromedp.Click(`.banner a`))
	b.until(`location.pathname === '/latest/from/kilo.html'`)
}

// copies wants the commands of a block without the output that it also shows.
func (b *tab) copies(address string) {
	b.Helper()
	b.do(chromedp.Navigate(address+"index.html"),
		run(`navigator.clipboard.writeText = async (text) => { globalThis.copied = text; }`),
		run(`[...document.querySelectorAll('.copy')].find(c => c.parentElement.innerText.includes('TIER')).click()`))
	b.until(`globalThis.copied === 'strait explain default/serve:http\n'`)
}

// onPhone opens the navigation and goes to a page.
func (b *tab) onPhone(address string) {
	b.Helper()
	b.do(b.size(360, 740), chromedp.Navigate(address+"locality.html"))
	b.until(`!document.querySelector('#pages').checkVisibility()`)
	b.do(chromedp.Click(`.menu`))
	b.until(`document.querySelector('#pages').checkVisibility() && document.querySelector('#pages [aria-current]').innerText === 'Where connections go'`)
	b.do(chromedp.Click(`//nav[@id="pages"]//a[text()="Services across clusters"]`))
	b.until(`location.pathname.endsWith('/services.html')`)
	b.do(b.size(1280, 900))
}

// withoutScripts reads a page and follows a link, with JavaScript turned off.
func (b *tab) withoutScripts(address string) {
	b.Helper()
	off := func(off bool) action {
		return call(emulation.SetScriptExecutionDisabled, emulation.SetScriptExecutionDisabledParams{Value: off})
	}
	b.do(off(true), chromedp.Navigate(address+"kubernetes.html"))
	b.shows("Install and join")
	for what, expression := range map[string]string{
		"the field of a search that cannot work": `!document.querySelector('.search').checkVisibility()`,
		"no way to other versions":               `document.querySelector('.version a').checkVisibility()`,
		"no navigation":                          `document.querySelector('#pages [aria-current]').checkVisibility()`,
	} {
		if !value[bool](b, expression) {
			b.Errorf("without JavaScript, the page has %s", what)
		}
	}
	b.do(chromedp.Click(`//nav[@id="pages"]//a[text()="Kernels"]`))
	b.until(`location.pathname.endsWith('/kernels.html')`)
	b.do(chromedp.Click(`.version a`))
	b.until(`location.pathname === '/versions.html'`)
	b.do(off(false))
}
