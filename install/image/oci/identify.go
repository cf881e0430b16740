package oci

import (
	"archive/tar"
	"errors"
	"fmt"
	"io"
	"os"

	v1 "github.com/google/go-containerregistry/pkg/v1"
)

// Identify returns the first name of the image in a file that Write wrote, and its digest.
func Identify(file string) (name, digest string, err error) {
	f, err := os.Open(file)
	if err != nil {
		return "", "", fmt.Errorf("read image: %w", err)
	}
	defer f.Close()
	for in := tar.NewReader(f); ; {
		h, err := in.Next()
		if errors.Is(err, io.EOF) {
			return "", "", fmt.Errorf("read image %s: it has no index.json", file)
		}
		if err != nil {
			return "", "", fmt.Errorf("read image %s: %w", file, err)
		}
		if h.Name != "index.json" {
			continue
		}
		index, err := v1.ParseIndexManifest(in)
		if err != nil {
			return "", "", fmt.Errorf("read image %s: index.json: %w", file, err)
		}
		if len(index.Manifests) == 0 {
			return "", "", fmt.Errorf("read image %s: index.json lists no image", file)
		}
		m := index.Manifests[0]
		return m.Annotations[nameAnnotation], m.Digest.String(), nil
	}
}
