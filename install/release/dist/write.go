package main

import (
	"fmt"
	"os"
	"path/filepath"
	"time"

	"strait.io/strait/install/image/oci"
	"strait.io/strait/install/release"
)

// write writes the folder. The layout's list of entries has checksums of all that is in the layout,
// so the checksums have that list alone of it.
func (w *work) write(entries []oci.Entry) error {
	if err := os.RemoveAll(w.out); err != nil {
		return fmt.Errorf("empty %s: %w", w.out, err)
	}
	if err := os.MkdirAll(w.out, 0o755); err != nil {
		return err
	}
	layout := filepath.Join(w.out, "oci")
	if err := oci.Layout(layout, entries); err != nil {
		return err
	}
	summed := map[string][]byte{}
	for _, name := range []string{"index.json", "oci-layout"} {
		text, err := os.ReadFile(filepath.Join(layout, name))
		if err != nil {
			return err
		}
		summed["oci/"+name] = text
	}
	for name, text := range w.files {
		summed[name] = text
	}
	sums := release.Sums(summed)
	w.files["SHA256SUMS"] = sums
	if w.key != nil {
		comment := fmt.Sprintf("strait %s, commit %s, %s", w.Version, w.Revision, w.Time.Format(time.RFC3339))
		w.files["SHA256SUMS.minisig"] = sign(sums, *w.key, comment)
	}
	for name, text := range w.files {
		if err := os.WriteFile(filepath.Join(w.out, name), text, 0o644); err != nil {
			return err
		}
	}
	return nil
}
