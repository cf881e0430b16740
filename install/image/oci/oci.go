// Package oci builds container images, the index of an image for several architectures, and charts
// as registries keep them, without a container runtime.
//
// Inputs are folders and what to run in them, and packed charts; outputs are files, with the same
// bytes for the same input: a tar that containerd loads, or a folder that can be pushed. It must
// not know registries.
package oci

import (
	"bytes"
	"compress/gzip"
	"errors"
	"fmt"
	"io"
	"time"

	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/empty"
	"github.com/google/go-containerregistry/pkg/v1/mutate"
	"github.com/google/go-containerregistry/pkg/v1/static"
	"github.com/google/go-containerregistry/pkg/v1/tarball"
	"github.com/google/go-containerregistry/pkg/v1/types"
)

// Image describes the image to build.
type Image struct {
	// Names are full references: "localhost/pause:1".
	Names []string
	// Root is the folder that becomes the only layer: root's files, dated 1970, which everyone may
	// read, and execute if their owner may.
	Root string
	// Arch is the GOARCH of the programs in Root.
	Arch            string
	Entrypoint, Cmd []string
	Env             []string
	// User is as in a Dockerfile; empty is root.
	User string
	// Gzip compresses the layer: the image is smaller, but slower to write and to load.
	Gzip bool
	// Created is when its source was written; 1970 if it is not set.
	Created time.Time
	// Annotations say what it is, in its manifest and as labels, which runtimes show.
	Annotations map[string]string
}

// Build makes the image.
func Build(image Image) (v1.Image, error) {
	if image.Root == "" || image.Arch == "" {
		return nil, errors.New("build image: it needs a root folder and an architecture")
	}
	var plain bytes.Buffer
	if err := pack(&plain, image.Root); err != nil {
		return nil, fmt.Errorf("pack %s: %w", image.Root, err)
	}
	layer, err := layerOf(plain.Bytes(), image.Gzip)
	if err != nil {
		return nil, fmt.Errorf("build layer: %w", err)
	}
	created := v1.Time{Time: time.Unix(0, 0).UTC()}
	if !image.Created.IsZero() {
		created.Time = image.Created.UTC()
	}
	out := mutate.ConfigMediaType(mutate.MediaType(empty.Image, types.OCIManifestSchema1), types.OCIConfigJSON)
	out, err = mutate.ConfigFile(out, &v1.ConfigFile{
		Architecture: image.Arch, OS: "linux", Created: created, RootFS: v1.RootFS{Type: "layers"},
		Config: v1.Config{
			Entrypoint: image.Entrypoint, Cmd: image.Cmd, User: image.User, Labels: image.Annotations,
			Env: append([]string{"PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"}, image.Env...),
		},
	})
	if err != nil {
		return nil, fmt.Errorf("configure image: %w", err)
	}
	out, err = mutate.Append(out, mutate.Addendum{Layer: layer, History: v1.History{Created: created, CreatedBy: "strait.io/strait/install/image"}})
	if err != nil {
		return nil, fmt.Errorf("add layer: %w", err)
	}
	return annotate(out, image.Annotations), nil
}

// annotate returns the image with annotations; mutate would also write an empty table.
func annotate[T any](image T, annotations map[string]string) T {
	if len(annotations) == 0 {
		return image
	}
	switch i := any(image).(type) {
	case v1.Image:
		return mutate.Annotations(i, annotations).(T)
	case v1.ImageIndex:
		return mutate.Annotations(i, annotations).(T)
	}
	return image
}

// layerOf makes a tar a layer.
func layerOf(plain []byte, compress bool) (v1.Layer, error) {
	if !compress {
		return static.NewLayer(plain, types.OCIUncompressedLayer), nil
	}
	return tarball.LayerFromOpener(func() (io.ReadCloser, error) { return io.NopCloser(bytes.NewReader(plain)), nil },
		tarball.WithCompressedCaching, tarball.WithCompressionLevel(gzip.DefaultCompression), tarball.WithMediaType(types.OCILayer))
}

// Index returns the index of one image for several architectures.
func Index(images []v1.Image, annotations map[string]string) (v1.ImageIndex, error) {
	out := mutate.IndexMediaType(empty.Index, types.OCIImageIndex)
	for _, i := range images {
		config, err := i.ConfigFile()
		if err != nil {
			return nil, fmt.Errorf("read the image's configuration: %w", err)
		}
		about := v1.Descriptor{Platform: config.Platform()}
		out = mutate.AppendManifests(out, mutate.IndexAddendum{Add: i, Descriptor: about})
	}
	return annotate(out, annotations), nil
}
