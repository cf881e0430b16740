// Package keyfile reads and makes files that hold one key as text, such as a private key in base64.
//
// Inputs are a path, which access by others is too much, and how to make a key. Output is the text.
// It must not know what kind of key it is. Errors never contain the text.
package keyfile

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
)

// The access by others that can be refused.
const (
	// AnyOther refuses files that the group or all users can access: for files that strait makes.
	AnyOther fs.FileMode = 0o077
	// AllUsers refuses files that all users can access. A Secret that is mounted for a pod with an
	// fsGroup is readable for the group.
	AllUsers fs.FileMode = 0o007
)

// maxText bounds what is read, in bytes: a large wrong file is not read into memory.
const maxText = 1024

// Read returns the text of a file, without the space around it. It refuses a file that others can
// access in a way that is in refused.
func Read(path string, refused fs.FileMode) (string, error) {
	f, err := os.Open(path)
	if err != nil {
		return "", err
	}
	defer f.Close()
	st, err := f.Stat()
	switch {
	case err != nil:
		return "", err
	case !st.Mode().IsRegular():
		return "", fmt.Errorf("%s is not a regular file", path)
	case st.Mode().Perm()&refused != 0:
		return "", fmt.Errorf("%s has mode %04o, so others can use it; run chmod 600 %s", path, st.Mode().Perm(), path)
	}
	text, err := io.ReadAll(io.LimitReader(f, maxText))
	if err != nil {
		return "", fmt.Errorf("read %s: %w", path, err)
	}
	return strings.TrimSpace(string(text)), nil
}

// LoadOrMake returns the text of a file that no other user can access. If there is none, it writes what
// make returns, with mode 0600, completely or not at all. If two processes do this at once, both get
// the text of the first.
func LoadOrMake(path string, make func() (string, error)) (string, error) {
	text, err := Read(path, AnyOther)
	if !errors.Is(err, fs.ErrNotExist) {
		return text, err
	}
	if text, err = make(); err != nil {
		return "", err
	}
	if err := Create(path, text); err != nil && !errors.Is(err, fs.ErrExist) {
		return "", err
	}
	return Read(path, AnyOther)
}

// Create writes a file with mode 0600, completely or not at all. If there is one already, it returns
// an error that wraps fs.ErrExist, and changes nothing. It makes the directory if necessary, with
// mode 0700.
func Create(path, text string) error {
	dir := filepath.Dir(path)
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return err
	}
	// A temporary file in the same directory, linked to path: unlike a rename, a link never replaces
	// a file that another process wrote meanwhile.
	f, err := os.CreateTemp(dir, "."+filepath.Base(path)+"-*") // mode 0600
	if err != nil {
		return err
	}
	defer os.Remove(f.Name())
	_, err = f.WriteString(text + "\n")
	if err := errors.Join(err, f.Sync(), f.Close()); err != nil {
		return err
	}
	if err := os.Link(f.Name(), path); err != nil {
		return err
	}
	d, err := os.Open(dir)
	if err != nil {
		return err
	}
	return errors.Join(d.Sync(), d.Close())
}
