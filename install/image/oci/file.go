package oci

import (
	"archive/tar"
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"

	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/partial"
)

// nameAnnotation is the annotation from which containerd takes an image's name.
const nameAnnotation = "io.containerd.image.name"

// Write builds the image and writes it to a file, whole or not at all. It returns the digest of the
// image's manifest, by which a registry that holds the image serves it.
func Write(file string, image Image) (string, error) {
	if len(image.Names) == 0 {
		return "", errors.New("write image: it needs a name")
	}
	built, err := Build(image)
	if err != nil {
		return "", err
	}
	about, err := partial.Descriptor(built)
	if err != nil {
		return "", fmt.Errorf("describe image: %w", err)
	}
	index := v1.IndexManifest{SchemaVersion: 2}
	for _, name := range image.Names {
		d := *about
		d.Annotations = map[string]string{nameAnnotation: name}
		d.Platform = &v1.Platform{OS: "linux", Architecture: image.Arch}
		index.Manifests = append(index.Manifests, d)
	}
	var out bytes.Buffer
	if err := writeTar(&out, index, built); err != nil {
		return "", fmt.Errorf("write layout: %w", err)
	}
	part := file + ".part"
	if err := os.WriteFile(part, out.Bytes(), 0o644); err != nil {
		return "", fmt.Errorf("write image: %w", err)
	}
	return about.Digest.String(), os.Rename(part, file)
}

// writeTar writes the tar of a layout that holds one image.
func writeTar(to io.Writer, index v1.IndexManifest, image v1.Image) error {
	text, err := json.Marshal(index)
	if err != nil {
		return err
	}
	w := tar.NewWriter(to)
	put := func(name string, b []byte) {
		err = errors.Join(err, w.WriteHeader(&tar.Header{Name: name, Mode: 0o644, Size: int64(len(b))}))
		_, e := w.Write(b)
		err = errors.Join(err, e)
	}
	put("oci-layout", []byte(`{"imageLayoutVersion":"1.0.0"}`))
	put("index.json", text)
	blobs, e := blobsOf(image)
	for _, b := range blobs {
		digest, _, e := v1.SHA256(bytes.NewReader(b))
		err = errors.Join(err, e)
		put("blobs/sha256/"+digest.Hex, b)
	}
	return errors.Join(err, e, w.Close())
}

// blobsOf returns the manifest of an image, its configuration and its layers.
func blobsOf(image v1.Image) (out [][]byte, err error) {
	manifest, err := image.RawManifest()
	if err != nil {
		return nil, err
	}
	config, err := image.RawConfigFile()
	if err != nil {
		return nil, err
	}
	layers, err := image.Layers()
	if err != nil {
		return nil, err
	}
	out = [][]byte{manifest, config}
	for _, l := range layers {
		r, err := l.Compressed()
		if err != nil {
			return nil, err
		}
		b, err := io.ReadAll(r)
		if err := errors.Join(err, r.Close()); err != nil {
			return nil, err
		}
		out = append(out, b)
	}
	return out, nil
}
