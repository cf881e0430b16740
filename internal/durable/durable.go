// Package durable replaces files so that a crash, of the process or of the machine, leaves the old content or the new.
//
// Input is a path and a function that writes the content. It must not know what is in the file. google/renameio does
// the same but for the directory, whose entry it leaves to the kernel to write when it pleases.
package durable

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
)

// Replace makes write's output the whole content of path, which only the owner may read, and makes the directory if
// need be. If it fails before the last step the file is what it was, and nothing else is left in the directory. The
// writers of one path must not write at the same time.
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

// fill writes a file and waits until it is on the disk.
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

// sync waits until a directory's entries are on the disk: else a rename may be forgotten.
func sync(dir string) error {
	d, err := os.Open(dir)
	if err != nil {
		return err
	}
	return errors.Join(d.Sync(), d.Close())
}
