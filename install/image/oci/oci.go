// Package oci writes container images without a container runtime: an OCI image layout with one
// layer, as a tar that containerd loads.
//
// Input is a folder and what to run in it; output is a file, the same bytes for the same input. The
// format is small and fixed (image-spec v1), so it is written here rather than with a library that
// also has registries and credentials.
package oci

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"time"
)

// Image describes the image to write.
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
}

// The media types of image-spec v1.
const (
	manifestType = "application/vnd.oci.image.manifest.v1+json"
	configType   = "application/vnd.oci.image.config.v1+json"
	layerType    = "application/vnd.oci.image.layer.v1.tar"
)

// nameAnnotation is the annotation from which containerd takes an image's name.
const nameAnnotation = "io.containerd.image.name"

type descriptor struct {
	MediaType   string            `json:"mediaType"`
	Digest      string            `json:"digest"`
	Size        int               `json:"size"`
	Annotations map[string]string `json:"annotations,omitempty"`
	Platform    map[string]string `json:"platform,omitempty"`
}

func describe(mediaType string, b []byte) descriptor {
	return descriptor{MediaType: mediaType, Digest: "sha256:" + digest(b), Size: len(b)}
}

func digest(b []byte) string {
	sum := sha256.Sum256(b)
	return hex.EncodeToString(sum[:])
}

// Write writes the image to a file, whole or not at all. It returns the digest of the image's
// manifest, by which a registry that holds the image serves it.
func Write(file string, image Image) (string, error) {
	if len(image.Names) == 0 || image.Root == "" || image.Arch == "" {
		return "", errors.New("write image: it needs a name, a root folder and an architecture")
	}
	var plain bytes.Buffer
	if err := pack(&plain, image.Root); err != nil {
		return "", fmt.Errorf("pack %s: %w", image.Root, err)
	}
	layer, kind := plain.Bytes(), layerType
	if image.Gzip {
		packed, err := compress(layer)
		if err != nil {
			return "", fmt.Errorf("compress layer: %w", err)
		}
		layer, kind = packed, layerType+"+gzip"
	}
	config, err := json.Marshal(map[string]any{
		"architecture": image.Arch, "os": "linux",
		"config": map[string]any{
			"Entrypoint": image.Entrypoint, "Cmd": image.Cmd, "User": image.User,
			"Env": append([]string{"PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"}, image.Env...),
		},
		"rootfs": map[string]any{"type": "layers", "diff_ids": []string{"sha256:" + digest(plain.Bytes())}},
	})
	if err != nil {
		return "", fmt.Errorf("encode configuration: %w", err)
	}
	manifest, err := json.Marshal(map[string]any{
		"schemaVersion": 2, "mediaType": manifestType,
		"config": describe(configType, config), "layers": []descriptor{describe(kind, layer)},
	})
	if err != nil {
		return "", fmt.Errorf("encode manifest: %w", err)
	}
	return describe(manifestType, manifest).Digest, writeLayout(file, image, manifest, config, layer)
}

// writeLayout writes the tar of a layout. Its index lists the one manifest under each of the names.
func writeLayout(file string, image Image, manifest []byte, blobs ...[]byte) error {
	var manifests []descriptor
	for _, name := range image.Names {
		d := describe(manifestType, manifest)
		d.Annotations = map[string]string{nameAnnotation: name}
		d.Platform = map[string]string{"architecture": image.Arch, "os": "linux"}
		manifests = append(manifests, d)
	}
	index, err := json.Marshal(map[string]any{"schemaVersion": 2, "manifests": manifests})
	if err != nil {
		return fmt.Errorf("encode index: %w", err)
	}
	var out bytes.Buffer
	w := tar.NewWriter(&out)
	put := func(name string, b []byte) {
		err = errors.Join(err, w.WriteHeader(&tar.Header{Name: name, Mode: 0o644, Size: int64(len(b))}))
		_, e := w.Write(b)
		err = errors.Join(err, e)
	}
	put("oci-layout", []byte(`{"imageLayoutVersion":"1.0.0"}`))
	put("index.json", index)
	for _, b := range append([][]byte{manifest}, blobs...) {
		put("blobs/sha256/"+digest(b), b)
	}
	if err := errors.Join(err, w.Close()); err != nil {
		return fmt.Errorf("write layout: %w", err)
	}
	part := file + ".part"
	if err := os.WriteFile(part, out.Bytes(), 0o644); err != nil {
		return fmt.Errorf("write image: %w", err)
	}
	return os.Rename(part, file)
}

func compress(b []byte) ([]byte, error) {
	var out bytes.Buffer
	w := gzip.NewWriter(&out)
	if _, err := w.Write(b); err != nil {
		return nil, err
	}
	if err := w.Close(); err != nil {
		return nil, err
	}
	return out.Bytes(), nil
}

// pack writes a folder as a tar that does not depend on the files' owners or times, nor on the umask
// under which they were made.
func pack(to io.Writer, root string) error {
	w := tar.NewWriter(to)
	err := filepath.WalkDir(root, func(path string, d fs.DirEntry, err error) error {
		if err != nil || path == root {
			return err
		}
		return add(w, root, path, d)
	})
	return errors.Join(err, w.Close())
}

func add(w *tar.Writer, root, path string, d fs.DirEntry) error {
	info, err := d.Info()
	if err != nil {
		return err
	}
	link := ""
	if info.Mode()&fs.ModeSymlink != 0 {
		if link, err = os.Readlink(path); err != nil {
			return err
		}
	}
	h, err := tar.FileInfoHeader(info, link)
	if err != nil {
		return err
	}
	if h.Name, err = filepath.Rel(root, path); err != nil {
		return err
	}
	if info.IsDir() {
		h.Name += "/"
	}
	h.Mode = 0o644
	if info.IsDir() || info.Mode()&0o100 != 0 {
		h.Mode = 0o755
	}
	h.Uid, h.Gid, h.Uname, h.Gname = 0, 0, "", ""
	h.ModTime, h.AccessTime, h.ChangeTime = time.Unix(0, 0), time.Time{}, time.Time{}
	if err := w.WriteHeader(h); err != nil || !info.Mode().IsRegular() {
		return err
	}
	f, err := os.Open(path)
	if err != nil {
		return err
	}
	defer f.Close()
	_, err = io.Copy(w, f)
	return err
}
