package support

import (
	"archive/tar"
	"compress/gzip"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"

	"strait.io/strait/daemon/api"
)

// manifestFile is the name of the manifest in the file.
const manifestFile = "bundle.json"

// Write writes the bundle as a compressed tar file: the manifest, and CLUSTER/NODE/PATH.json for
// each answer.
func (b *Bundle) Write(w io.Writer) error {
	z := gzip.NewWriter(w)
	t := tar.NewWriter(z)
	manifest, err := json.MarshalIndent(b.Manifest, "", "  ")
	if err == nil {
		err = b.put(t, manifestFile, manifest)
	}
	for _, name := range slices.Sorted(maps.Keys(b.answers)) {
		if err == nil {
			err = b.put(t, name+".json", b.answers[name])
		}
	}
	return errors.Join(err, t.Close(), z.Close())
}

func (b *Bundle) put(t *tar.Writer, name string, body []byte) error {
	h := tar.Header{Typeflag: tar.TypeReg, Name: name, Mode: 0o600, Size: int64(len(body)), ModTime: b.Time, Format: tar.FormatPAX}
	if err := t.WriteHeader(&h); err != nil {
		return fmt.Errorf("write %s: %w", name, err)
	}
	_, err := t.Write(body)
	return err
}

// Read reads a bundle that Write wrote. It fails if the file is not a bundle, or is truncated.
func Read(r io.Reader) (*Bundle, error) {
	z, err := gzip.NewReader(r)
	if err != nil {
		return nil, fmt.Errorf("it is not a support bundle: %w", err)
	}
	b := &Bundle{answers: map[string][]byte{}}
	t := tar.NewReader(z)
	left := int64(maxBytes)
	for n := 0; ; n++ {
		h, err := t.Next()
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			return nil, fmt.Errorf("it is not a support bundle, or is truncated: %w", err)
		}
		if n >= maxFiles || h.Typeflag != tar.TypeReg || h.Size > left {
			return nil, fmt.Errorf("it is not a support bundle: %q does not belong there", h.Name)
		}
		left -= h.Size
		body, err := io.ReadAll(t)
		if err != nil {
			return nil, fmt.Errorf("read %s: %w", h.Name, err)
		}
		if err := b.take(h.Name, body); err != nil {
			return nil, fmt.Errorf("read %s: %w", h.Name, err)
		}
	}
	if b.Kind != Kind || b.APIVersion != api.APIVersion {
		return nil, fmt.Errorf("it is not a support bundle of this version: its kind is %q %q, want %q %q", b.APIVersion, b.Kind, api.APIVersion, Kind)
	}
	return b, nil
}

// take takes one file.
func (b *Bundle) take(name string, body []byte) error {
	if name == manifestFile {
		return json.Unmarshal(body, &b.Manifest)
	}
	answer, is := strings.CutSuffix(name, ".json")
	if !is || strings.Count(answer, "/") != 2 {
		return errors.New("it is not CLUSTER/NODE/PATH.json")
	}
	if !json.Valid(body) {
		return errors.New("it is not JSON")
	}
	b.answers[answer] = body
	return nil
}
