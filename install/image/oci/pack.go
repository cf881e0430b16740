package oci

import (
	"archive/tar"
	"errors"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"time"
)

// pack writes a folder as a tar that does not depend on the files' owners or times, nor on the
// umask under which they were made.
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
