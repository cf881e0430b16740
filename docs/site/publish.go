package main

import (
	"bytes"
	"encoding/json"
	"html/template"
	"os"
	"path/filepath"
	"strings"

	"strait.io/strait/docs/site/plan"
)

// allVersions is the page that lists the versions, for readers without JavaScript.
const allVersions = "versions.html"

var front = template.Must(template.New("").Parse(`<!doctype html>
<html lang="en">
<meta charset="utf-8">
<meta http-equiv="refresh" content="0; url=latest/index.html">
<link rel="icon" href="data:,">
<title>strait</title>
<p><a href="latest/index.html">The documentation of strait {{ .Latest }}</a></p>
</html>
`))

var list = template.Must(template.New("").Parse(`<!doctype html>
<html lang="en">
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta name="color-scheme" content="light dark">
<link rel="icon" href="data:,">
<title>Versions · strait</title>
<h1>Versions of the documentation</h1>
<ul>
<li><a href="latest/index.html">latest</a>, which is {{ .Latest }}
{{ range .Versions }}<li><a href="{{ . }}/index.html">{{ . }}</a>
{{ end }}</ul>
</html>
`))

// publish updates what all versions share: the folder latest, the list for programs, the list for
// people, and the page that leads to the latest version.
func publish(out, built, work string) error {
	entries, err := os.ReadDir(out)
	if err != nil {
		return err
	}
	var names []string
	for _, e := range entries {
		if e.IsDir() && e.Name() != plan.Latest && !strings.HasPrefix(e.Name(), ".") {
			names = append(names, e.Name())
		}
	}
	versions := plan.Order(names, built)
	latest := filepath.Join(work, plan.Latest)
	if err := os.CopyFS(latest, os.DirFS(filepath.Join(out, versions.Latest))); err != nil {
		return err
	}
	if err := replace(filepath.Join(out, plan.Latest), latest); err != nil {
		return err
	}
	text, err := json.MarshalIndent(versions, "", "  ")
	if err != nil {
		return err
	}
	if err := write(filepath.Join(out, "versions.json"), append(text, '\n')); err != nil {
		return err
	}
	for name, page := range map[string]*template.Template{allVersions: list, "index.html": front} {
		var b bytes.Buffer
		if err := page.Execute(&b, versions); err != nil {
			return err
		}
		if err := write(filepath.Join(out, name), b.Bytes()); err != nil {
			return err
		}
	}
	return nil
}

// replace moves a folder to where another one may be.
func replace(to, from string) error {
	if err := os.RemoveAll(to); err != nil {
		return err
	}
	return os.Rename(from, to)
}
