// Command site builds the documentation site of one version from the repository's Markdown pages.
//
// Inputs are the pages, the pictures of docs/images, the layouts in hugo, and Hugo, which renders
// them. Outputs are the version's folder, the folder latest, and the list of versions in the folder
// above, where other versions stay as they are. The same pages give the same bytes. It must not
// know what a page is about: plan decides where pages are, and the layouts how they look.
package main

import (
	"bytes"
	"embed"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"strings"

	"strait.io/strait/docs/site/deadlinks"
	"strait.io/strait/docs/site/plan"
	"strait.io/strait/test/pages"
)

//go:embed all:hugo
var layouts embed.FS

// options are the flags.
type options struct {
	source, out, version, hugo, files string
}

func main() {
	var o options
	flag.StringVar(&o.source, "source", ".", "the repository")
	flag.StringVar(&o.out, "out", "site", "the folder of all versions")
	flag.StringVar(&o.version, "version", "dev", "the version to build: v1.2.3")
	flag.StringVar(&o.hugo, "hugo", "hugo", "the program Hugo")
	flag.StringVar(&o.files, "files", "", "where the repository's files can be read: https://example.com/strait/blob/v1.2.3/; without it, links to files are text")
	flag.Parse()
	if err := build(o); err != nil {
		fmt.Fprintln(os.Stderr, "docs/site:", err)
		os.Exit(1)
	}
	fmt.Println(filepath.Join(o.out, o.version, "index.html"))
}

// build builds a version beside the others, and replaces nothing until it is known to be good.
func build(o options) error {
	if err := plan.CheckVersion(o.version); err != nil {
		return err
	}
	all, err := pages.Load(os.DirFS(o.source))
	if err != nil {
		return err
	}
	texts := map[string]string{}
	for _, p := range all {
		texts[p.Path] = p.Text
	}
	site, errs := plan.New(texts)
	if len(errs) > 0 {
		return errors.Join(errs...)
	}
	if err := os.MkdirAll(o.out, 0o755); err != nil {
		return err
	}
	work, err := os.MkdirTemp(o.out, ".building-")
	if err != nil {
		return err
	}
	defer os.RemoveAll(work)
	if err := stage(o, site, filepath.Join(work, "hugo")); err != nil {
		return err
	}
	made, err := render(o, work)
	if err != nil {
		return err
	}
	faults, err := deadlinks.Check(os.DirFS(made), allVersions)
	if err != nil {
		return err
	}
	if len(faults) > 0 {
		return fmt.Errorf("the site has dead links:\n%s", strings.Join(faults, "\n"))
	}
	if err := replace(filepath.Join(o.out, o.version), made); err != nil {
		return err
	}
	return publish(o.out, o.version, work)
}

// stage writes what Hugo reads: the layouts, the pages with their places, and the pictures.
func stage(o options, site plan.Site, dir string) error {
	inner, err := fs.Sub(layouts, "hugo")
	if err != nil {
		return err
	}
	if err := os.CopyFS(dir, inner); err != nil {
		return err
	}
	if err := os.CopyFS(filepath.Join(dir, "assets/images"), os.DirFS(filepath.Join(o.source, "docs/images"))); err != nil {
		return err
	}
	if o.files != "" {
		o.files = strings.TrimSuffix(o.files, "/") + "/"
	}
	data, err := json.Marshal(struct {
		plan.Site
		Version string `json:"version"`
		Files   string `json:"files"`
	}{site, o.version, o.files})
	if err != nil {
		return err
	}
	if err := write(filepath.Join(dir, "data/plan.json"), data); err != nil {
		return err
	}
	for source, p := range site.Pages {
		front, err := json.Marshal(map[string]any{"title": p.Title, "url": "/" + p.URL, "source": source})
		if err != nil {
			return err
		}
		name := source
		if source == plan.Front {
			name = "_index.md"
		}
		if err := write(filepath.Join(dir, "content", name), append(front, "\n\n"+p.Text...)); err != nil {
			return err
		}
	}
	return nil
}

// render runs Hugo in the staged folder, and returns the folder that it made.
func render(o options, work string) (string, error) {
	made, err := filepath.Abs(filepath.Join(work, "made"))
	if err != nil {
		return "", err
	}
	hugo, err := exec.LookPath(o.hugo)
	if err == nil {
		hugo, err = filepath.Abs(hugo)
	}
	if err != nil {
		return "", fmt.Errorf("find Hugo: %w; run make site, which builds it", err)
	}
	cmd := exec.Command(hugo, "--destination", made, "--cacheDir", made+".cache", "--noBuildLock")
	cmd.Dir = filepath.Join(work, "hugo")
	// Settings of the person who builds, such as HUGO_TITLE, would change the pages.
	for _, v := range os.Environ() {
		if !strings.HasPrefix(v, "HUGO") {
			cmd.Env = append(cmd.Env, v)
		}
	}
	var output bytes.Buffer
	cmd.Stdout, cmd.Stderr = &output, &output
	err = cmd.Run()
	if err == nil && bytes.Contains(output.Bytes(), []byte("WARN")) {
		err = errors.New("it warns, so the layouts need a change")
	}
	if err != nil {
		return "", fmt.Errorf("hugo: %w\n%s", err, &output)
	}
	return made, nil
}

func write(file string, text []byte) error {
	if err := os.MkdirAll(filepath.Dir(file), 0o755); err != nil {
		return err
	}
	return os.WriteFile(file, text, 0o644)
}
