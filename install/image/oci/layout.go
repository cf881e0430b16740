package oci

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"

	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/empty"
	"github.com/google/go-containerregistry/pkg/v1/layout"
	"github.com/google/go-containerregistry/pkg/v1/partial"
	"github.com/google/go-containerregistry/pkg/v1/static"
	"github.com/google/go-containerregistry/pkg/v1/types"
)

// RefName is the annotation that names an entry of a layout, as image-spec has it.
const RefName = "org.opencontainers.image.ref.name"

// Helm's media types.
const (
	chartConfig types.MediaType = "application/vnd.cncf.helm.config.v1+json"
	chartLayer  types.MediaType = "application/vnd.cncf.helm.chart.content.v1.tar+gzip"
)

// Chart makes a packed chart what `helm push` would make of it. Its metadata is Chart.yaml, as
// JSON.
func Chart(metadata, packed []byte, annotations map[string]string) (v1.Image, error) {
	a := &artifact{config: metadata, layer: static.NewLayer(packed, chartLayer)}
	config, err := partial.Descriptor(static.NewLayer(metadata, chartConfig))
	if err != nil {
		return nil, fmt.Errorf("describe the chart's metadata: %w", err)
	}
	layer, err := partial.Descriptor(a.layer)
	if err != nil {
		return nil, fmt.Errorf("describe the chart: %w", err)
	}
	a.manifest, err = json.Marshal(v1.Manifest{
		SchemaVersion: 2, MediaType: types.OCIManifestSchema1, Config: *config, Layers: []v1.Descriptor{*layer}, Annotations: annotations,
	})
	if err != nil {
		return nil, fmt.Errorf("encode the chart's manifest: %w", err)
	}
	return partial.CompressedToImage(a)
}

// artifact is something else than a container image that registries keep as an image: mutate only
// writes configurations of container images.
type artifact struct {
	config, manifest []byte
	layer            v1.Layer
}

func (a *artifact) MediaType() (types.MediaType, error) { return types.OCIManifestSchema1, nil }
func (a *artifact) RawConfigFile() ([]byte, error)      { return a.config, nil }
func (a *artifact) RawManifest() ([]byte, error)        { return a.manifest, nil }

func (a *artifact) LayerByDigest(h v1.Hash) (partial.CompressedLayer, error) {
	if is, err := a.layer.Digest(); err != nil || is != h {
		return nil, fmt.Errorf("no layer %s", h)
	}
	return a.layer, nil
}

// Entry is one of the images of a layout. Only one of Image and Index is set.
type Entry struct {
	Name  string // strait:v0.1.0
	Image v1.Image
	Index v1.ImageIndex
}

// Layout writes a folder with images, from which a program for registries can push them.
func Layout(dir string, entries []Entry) error {
	if err := os.RemoveAll(dir); err != nil {
		return fmt.Errorf("empty the layout: %w", err)
	}
	to, err := layout.Write(dir, empty.Index)
	if err != nil {
		return fmt.Errorf("write layout: %w", err)
	}
	for _, e := range entries {
		name := layout.WithAnnotations(map[string]string{RefName: e.Name})
		if e.Index != nil {
			err = to.AppendIndex(e.Index, name)
		} else {
			err = to.AppendImage(e.Image, name)
		}
		if err != nil {
			return fmt.Errorf("write %s into the layout: %w", e.Name, err)
		}
	}
	// The library lets everyone write, and execute.
	return filepath.WalkDir(dir, func(path string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		return os.Chmod(path, 0o644)
	})
}

// Digest returns the digest of an index or image, by which registries serve it.
func Digest(of interface{ RawManifest() ([]byte, error) }) (string, error) {
	text, err := of.RawManifest()
	if err != nil {
		return "", err
	}
	h, _, err := v1.SHA256(bytes.NewReader(text))
	return h.String(), err
}
