package oci

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"encoding/json"
	"errors"
	"io"
	"os"
	"path/filepath"
	"testing"
	"time"

	v1 "github.com/google/go-containerregistry/pkg/v1"
)

// members reads a tar: names to contents, and headers.
func members(t *testing.T, r io.Reader) (map[string][]byte, map[string]*tar.Header) {
	t.Helper()
	files, headers := map[string][]byte{}, map[string]*tar.Header{}
	for in := tar.NewReader(r); ; {
		h, err := in.Next()
		if errors.Is(err, io.EOF) {
			return files, headers
		}
		if err != nil {
			t.Fatal(err)
		}
		b, err := io.ReadAll(in)
		if err != nil {
			t.Fatal(err)
		}
		files[h.Name], headers[h.Name] = b, h
	}
}

func root(t *testing.T, when time.Time) string {
	t.Helper()
	dir := t.TempDir()
	if err := os.WriteFile(filepath.Join(dir, "strait"), []byte("program"), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink("strait", filepath.Join(dir, "link")); err != nil {
		t.Fatal(err)
	}
	if err := os.Chtimes(filepath.Join(dir, "strait"), when, when); err != nil {
		t.Fatal(err)
	}
	return dir
}

// Every reference in the layout leads to a blob whose digest is its name, down to the file in the layer.
func TestWrite(t *testing.T) {
	for _, packed := range []bool{false, true} {
		file := filepath.Join(t.TempDir(), "image.tar")
		image := Image{
			Names: []string{"localhost/a:1", "localhost/b:1"}, Root: root(t, time.Now()), Arch: "arm64",
			Entrypoint: []string{"/strait"}, Gzip: packed,
		}
		written, err := Write(file, image)
		if err != nil {
			t.Fatal(err)
		}
		b, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		files, _ := members(t, bytes.NewReader(b))
		blob := func(d v1.Descriptor) []byte {
			b, ok := files["blobs/sha256/"+d.Digest.Hex]
			if !ok || int64(len(b)) != d.Size || digest(b) != d.Digest {
				t.Fatalf("blob %s: %d bytes, want %d of this digest", d.Digest, len(b), d.Size)
			}
			return b
		}
		var index v1.IndexManifest
		decode(t, files["index.json"], &index)
		if index.Manifests[0].Digest.String() != written {
			t.Errorf("digest %s, want %s", written, index.Manifests[0].Digest)
		}
		if name, digest, err := Identify(file); err != nil || name != "localhost/a:1" || digest != written {
			t.Errorf("identified as %s, %s: %v", name, digest, err)
		}
		if len(index.Manifests) != 2 || index.Manifests[1].Annotations["io.containerd.image.name"] != "localhost/b:1" {
			t.Fatalf("index %+v", index)
		}
		var manifest v1.Manifest
		decode(t, blob(index.Manifests[0]), &manifest)
		var config v1.ConfigFile
		decode(t, blob(manifest.Config), &config)
		layer := blob(manifest.Layers[0])
		if packed {
			r, err := gzip.NewReader(bytes.NewReader(layer))
			if err != nil {
				t.Fatal(err)
			}
			if layer, err = io.ReadAll(r); err != nil {
				t.Fatal(err)
			}
		}
		if config.Architecture != "arm64" || config.Config.Entrypoint[0] != "/strait" || config.RootFS.DiffIDs[0] != digest(layer) {
			t.Errorf("configuration %+v", config)
		}
		in, headers := members(t, bytes.NewReader(layer))
		if h := headers["strait"]; h == nil || string(in["strait"]) != "program" || h.Mode != 0o755 || h.Uid != 0 || h.ModTime.Unix() != 0 {
			t.Errorf("strait in the layer: %+v", h)
		}
		if h := headers["link"]; h == nil || h.Linkname != "strait" {
			t.Errorf("link in the layer: %+v", h)
		}
	}
}

// TestSameBytes: the image does not depend on when its files were made, or on the umask then.
func TestSameBytes(t *testing.T) {
	var made [][]byte
	for _, c := range []struct {
		when time.Time
		mode os.FileMode
	}{{time.Now(), 0o755}, {time.Now().Add(-time.Hour), 0o700}} {
		file, dir := filepath.Join(t.TempDir(), "image.tar"), root(t, c.when)
		if err := os.Chmod(filepath.Join(dir, "strait"), c.mode); err != nil {
			t.Fatal(err)
		}
		if _, err := Write(file, Image{Names: []string{"localhost/a:1"}, Root: dir, Arch: "amd64"}); err != nil {
			t.Fatal(err)
		}
		b, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		made = append(made, b)
	}
	if !bytes.Equal(made[0], made[1]) {
		t.Error("the same files of another hour and umask make another image")
	}
}

func TestWriteRefuses(t *testing.T) {
	for _, image := range []Image{{}, {Names: []string{"a"}, Arch: "amd64"}, {Names: []string{"a"}, Root: "/nowhere", Arch: "amd64"}} {
		if _, err := Write(filepath.Join(t.TempDir(), "image.tar"), image); err == nil {
			t.Errorf("%+v makes an image", image)
		}
	}
}

func digest(b []byte) v1.Hash {
	h, _, _ := v1.SHA256(bytes.NewReader(b)) // reading memory does not fail
	return h
}

func decode(t *testing.T, b []byte, to any) {
	t.Helper()
	if err := json.Unmarshal(b, to); err != nil {
		t.Fatalf("decode %s: %v", b, err)
	}
}
