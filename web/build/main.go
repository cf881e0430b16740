// Command build makes the page of strait ui from its TypeScript: web/dist from web/src.
//
// Input is the folder web; outputs are the files of web/dist, the same bytes for the same source. It must
// not need a network, nor Node.js.
package main

import (
	"bytes"
	"flag"
	"fmt"
	"os"
	"path/filepath"

	"github.com/evanw/esbuild/pkg/api"
)

func main() {
	dir := flag.String("web", ".", "the folder web of the source")
	flag.Parse()
	if err := write(*dir); err != nil {
		fmt.Fprintln(os.Stderr, "web/build:", err)
		os.Exit(1)
	}
}

func write(dir string) error {
	files, err := build(dir)
	if err != nil {
		return err
	}
	for name, text := range files {
		if err := os.WriteFile(filepath.Join(dir, "dist", name), text, 0o644); err != nil {
			return err
		}
	}
	return nil
}

// licence begins the script: that of what is bundled in it.
const licence = "/* strait, Apache-2.0; with Preact 11.2.0, MIT, (c) 2015-present Jason Miller: web/preact/LICENSE */"

// build returns the files of dist by name.
func build(dir string) (map[string][]byte, error) {
	dir, err := filepath.Abs(dir)
	if err != nil {
		return nil, err
	}
	preact := filepath.Join(dir, "preact")
	result := api.Build(api.BuildOptions{
		AbsWorkingDir: dir,
		EntryPoints:   []string{"src/app.tsx", "src/app.css"},
		Outdir:        "dist",
		Bundle:        true,
		Format:        api.FormatESModule,
		Target:        api.ES2022,
		// Names of properties stay: they are those of the server's JSON.
		MinifyWhitespace: true, MinifySyntax: true, MinifyIdentifiers: true,
		JSX: api.JSXTransform, JSXFactory: "h", JSXFragment: "Fragment",
		Alias: map[string]string{
			"preact/hooks": filepath.Join(preact, "hooks.mjs"),
			"preact":       filepath.Join(preact, "preact.mjs"),
		},
		Banner:        map[string]string{"js": licence},
		Charset:       api.CharsetUTF8,
		LegalComments: api.LegalCommentsNone,
		LogLevel:      api.LogLevelSilent,
	})
	if len(result.Errors)+len(result.Warnings) > 0 {
		var text bytes.Buffer
		for _, m := range append(result.Errors, result.Warnings...) {
			if m.Location != nil {
				fmt.Fprintf(&text, "\n%s:%d: ", m.Location.File, m.Location.Line)
			}
			text.WriteString(m.Text)
		}
		return nil, fmt.Errorf("bundle %s:%s", dir, text.Bytes())
	}
	files := map[string][]byte{}
	for _, f := range result.OutputFiles {
		files[filepath.Base(f.Path)] = f.Contents
	}
	page, err := os.ReadFile(filepath.Join(dir, "src", "index.html"))
	files["index.html"] = page
	return files, err
}
