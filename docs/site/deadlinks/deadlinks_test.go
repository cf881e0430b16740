package deadlinks

import (
	"strings"
	"testing"
	"testing/fstest"
)

// TestCheck wants each fault found in a page that has only that one.
func TestCheck(t *testing.T) {
	for _, c := range []struct{ name, text, want string }{
		{"nothing", `<p id="x"><a href="#x"></a><a href="b.html#y"></a><a href="../top.html"></a><a href="../../versions.html"></a><a href="https://x.invalid/y#z"></a><img src="b.png"><link href="data:,"><script src="b.js"></script>`, ""},
		{"a link without an address", `<a id="x"></a>`, ""},
		{"no file", `<a href="c.html"></a>`, "d/a.html: c.html: there is no file d/c.html"},
		{"no anchor", `<a href="b.html#z"></a>`, "d/b.html has nothing with the id z"},
		{"no anchor here", `<a href="#z"></a>`, "d/a.html has nothing with the id z"},
		{"an anchor with another case", `<a href="b.html#Y"></a>`, "nothing with the id Y"},
		{"an anchor in a picture", `<a href="b.png#y"></a>`, "nothing with the id y"},
		{"a picture that is missing", `<img src="c.png">`, "there is no file d/c.png"},
		{"a file beside that nothing makes", `<a href="../../other.html"></a>`, "there is no file ../other.html"},
		{"an absolute path", `<a href="/d/b.html"></a>`, "not relative"},
		{"a host alone", `<a href="//x.invalid/y"></a>`, "not relative"},
		{"a picture of another host", `<img src="https://x.invalid/y.png">`, "from another host"},
		{"a script of another host", `<script src="//x.invalid/y.js"></script>`, "from another host"},
		{"a link without a host", `<a href="https:///y"></a>`, "no host"},
		{"a script", `<a href="javascript:1"></a>`, "leads nowhere"},
		{"a bad address", `<a href="https://x.invalid:port/"></a>`, "invalid port"},
		{"an anchor twice", `<p id="x"></p><p id="x"></p>`, "two elements have the id x"},
		{"a style", `<p style="color:red">`, "its policy forbids"},
		{"a handler", `<p onclick="f()">`, "its policy forbids"},
		{"a script inside", `<script>f()</script>`, "its policy forbids"},
	} {
		got, err := Check(fstest.MapFS{
			"d/a.html": {Data: []byte(c.text)}, "d/b.html": {Data: []byte(`<p id=y>`)}, "d/b.png": {}, "d/b.js": {}, "top.html": {},
			"d/text.txt": {Data: []byte(`<a href="nowhere">`)},
		}, "versions.html")
		if err != nil || c.want == "" && len(got) > 0 || c.want != "" && (len(got) != 1 || !strings.Contains(got[0], c.want)) {
			t.Errorf("%s: got %q, %v, want one with %q", c.name, got, err, c.want)
		}
	}
}
