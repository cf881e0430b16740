// Package durable replaces files so that after a crash, of the process or of the machine, a file
// has either its old content or its new.
//
// Input is a path and a function that writes the content. It must not know what is in the file.
// Unlike google/renameio it also syncs the directory, so the rename is on disk when Replace
// returns.
package durable

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
)

// Replace replaces the content of path by what write writes. Only the owner may read the file.
// Replace creates the directory if necessary. If it fails before the last step, the file is
// unchanged, and nothing else is left in the directory. Writers of the same path must not run at
// the same time.
func Replace(path string, write func(*os.File) error) error {
	dir := filepath.Dir(path)
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return fmt.Errorf("replace %s: %w", path, err)
	}
	tmp := path + ".tmp"
	if err := fill(tmp, write); err != nil {
		_ = os.Remove(tmp) // the next Replace overwrites it
		return fmt.Errorf("replace %s: %w", path, err)
	}
	if err := os.Rename(tmp, path); err != nil {
		_ = os.Remove(tmp)
		return fmt.Errorf("replace %s: %w", path, err)
	}
	if err := sync(dir); err != nil {
		return fmt.Errorf("replace %s: %w", path, err)
	}
	return nil
}

// fill writes a file and waits until it is on disk.
func fill(path string, write func(*os.File) error) error {
	f, err := os.OpenFile(path, os.O_WRONLY|os.O_CREATE|os.O_TRUNC, 0o600)
	if err != nil {
		return err
	}
	err = write(f)
	if err == nil {
		err = f.Sync()
	}
	return errors.Join(err, f.Close())
}

// sync waits until a directory's entries are on disk. Otherwise a crash could undo a rename.
func sync(dir string) error {
	d, err := os.Open(dir)
	if err != nil {
		return err
	}
	return errors.Join(d.Sync(), d.Close())
}
