package main

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"

	v1 "github.com/google/go-containerregistry/pkg/v1"

	"strait.io/strait/install/chart"
	"strait.io/strait/install/image/bom"
	"strait.io/strait/install/image/oci"
	"strait.io/strait/install/release"
)

// work is a release that is being written.
type work struct {
	options
	platforms []release.Platform
	// files are those of the folder, by name.
	files map[string][]byte
}

// assemble writes the release, after all of it has been made.
func assemble(o options, platforms []release.Platform, changes string) error {
	w := &work{o, platforms, map[string][]byte{}}
	images, digest, err := w.images()
	if err != nil {
		return err
	}
	packed, err := w.chart(digest)
	if err != nil {
		return err
	}
	archives, err := w.archives()
	if err != nil {
		return err
	}
	w.files["strait.krew.yaml"] = o.Krew(archives)
	w.files["strait.rb"] = o.Homebrew(archives)
	w.files["RELEASE_NOTES.md"] = o.Notes(changes, digest, o.history)
	if err := w.write([]oci.Entry{{Name: o.EntryOfImage(), Index: images}, {Name: o.EntryOfChart(), Image: packed}}); err != nil {
		return err
	}
	fmt.Printf("%s holds strait %s: %d files, and the image %s:%s@%s\n", o.out, o.Version, len(w.files), o.Image(), o.Version, digest)
	if o.key == nil {
		fmt.Println("not signed: RELEASE_KEY=FILE names a key of minisign")
	}
	return nil
}

// archives packs the programs, and returns those of strait.
func (w *work) archives() (out release.Archives, err error) {
	about, err := readPapers()
	if err != nil {
		return nil, err
	}
	books, err := folder(filepath.Join(w.built, "books"))
	if err != nil {
		return nil, fmt.Errorf("read completions and manual pages: %w", err)
	}
	for _, p := range w.platforms {
		for _, program := range p.Programs() {
			text, err := os.ReadFile(filepath.Join(w.built, p.Folder(), p.Executable(program)))
			if err != nil {
				return nil, err
			}
			files := []release.File{{Name: p.Executable(program), Text: text, Program: true}, about.licence}
			if program == "strait" {
				files = append(append(files, about.readme), books...)
			}
			name := w.Archive(program, p)
			packed, err := release.Pack(name, files, w.Time)
			if err != nil {
				return nil, fmt.Errorf("pack %s: %w", name, err)
			}
			w.files[name] = packed
			if program == "strait" {
				out = append(out, release.Packed{Platform: p, Archive: packed})
			}
			if w.files[w.Name(program, p)+".cdx.json"], err = os.ReadFile(w.bill(program, p)); err != nil {
				return nil, err
			}
		}
	}
	return out, nil
}

// bill is the file with the bill of materials of a program.
func (w *work) bill(program string, p release.Platform) string {
	return filepath.Join(w.built, "bom", p.Folder()+"-"+program+".cdx.json")
}

// images builds the image for each processor, with its bill of materials, and their index.
func (w *work) images() (v1.ImageIndex, string, error) {
	about := w.Annotations("strait", release.Description)
	var images []v1.Image
	for _, p := range w.platforms {
		if p.OS != "linux" {
			continue
		}
		image, err := oci.Build(oci.Image{
			Root: filepath.Join(w.built, p.Folder()), Arch: p.Arch, Entrypoint: []string{"/straitd"},
			Gzip: true, Created: w.Time, Annotations: about,
		})
		if err != nil {
			return nil, "", err
		}
		digest, err := oci.Digest(image)
		if err != nil {
			return nil, "", err
		}
		var bills [][]byte
		for _, program := range p.Programs() {
			text, err := os.ReadFile(w.bill(program, p))
			if err != nil {
				return nil, "", err
			}
			bills = append(bills, text)
		}
		if w.files[w.Name("strait-image", p)+".cdx.json"], err = bom.Compose(w.Image(), digest, bills); err != nil {
			return nil, "", err
		}
		images = append(images, image)
	}
	index, err := oci.Index(images, about)
	if err != nil {
		return nil, "", err
	}
	digest, err := oci.Digest(index)
	return index, digest, err
}

// chart packs the chart with the image's digest, renders the manifests of it, and returns what
// registries keep.
func (w *work) chart(digest string) (v1.Image, error) {
	files, err := chartFiles()
	if err != nil {
		return nil, err
	}
	if files, err = w.Chart(files, digest); err != nil {
		return nil, fmt.Errorf("install/chart/strait: %w", err)
	}
	byName := map[string][]byte{}
	for _, f := range files {
		byName[strings.TrimPrefix(f.Name, "strait/")] = f.Text
	}
	docs, err := chart.Render(chart.Options{Files: byName, Values: chart.Values{"createNamespace": true}})
	if err != nil {
		return nil, err
	}
	packed, err := release.Pack(w.PackedChart(), files, w.Time)
	if err != nil {
		return nil, fmt.Errorf("pack the chart: %w", err)
	}
	w.files["strait.yaml"], w.files[w.PackedChart()] = w.Manifests(docs), packed
	about, err := release.Metadata(files)
	if err != nil {
		return nil, err
	}
	annotations := w.Annotations("strait", "The Helm chart of strait. "+release.Description)
	annotations["org.opencontainers.image.version"] = w.Number() // as Helm has it
	return oci.Chart(about, packed, annotations)
}
