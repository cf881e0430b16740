package wireguard

import (
	"crypto/rand"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"

	"strait.io/strait/internal/key"
)

// LoadKey reads the private key in base64 from path. If there is no file, it generates a key and
// writes it with mode 0600, completely or not at all. If two processes do this at once, both get
// the key of the first. LoadKey refuses a file that others can access, because anyone who has the
// key can pose as this node.
func LoadKey(path string) (key.Private, error) {
	if path == "" {
		return key.Private{}, errors.New("load private key: no key file is configured")
	}
	k, err := readKey(path)
	if !errors.Is(err, fs.ErrNotExist) {
		return k, err
	}
	if err := createKey(path); err != nil {
		return key.Private{}, fmt.Errorf("create private key file %s: %w", path, err)
	}
	return readKey(path)
}

func readKey(path string) (key.Private, error) {
	f, err := os.Open(path)
	if err != nil {
		return key.Private{}, fmt.Errorf("open private key file: %w", err)
	}
	defer f.Close()
	st, err := f.Stat()
	if err != nil {
		return key.Private{}, fmt.Errorf("inspect private key file: %w", err)
	}
	if !st.Mode().IsRegular() {
		return key.Private{}, fmt.Errorf("private key file %s is not a regular file", path)
	}
	if st.Mode().Perm()&0o077 != 0 {
		return key.Private{}, fmt.Errorf("private key file %s has mode %04o, so others can use it; run chmod 600 %s, or delete it for a new key",
			path, st.Mode().Perm(), path)
	}
	text := make([]byte, 256) // a key has 44 characters; do not read a large wrong file into memory
	n, err := f.Read(text)
	if err != nil && n == 0 && st.Size() != 0 {
		return key.Private{}, fmt.Errorf("read private key file %s: %w", path, err)
	}
	k, err := key.ParsePrivate(string(text[:n]))
	if err != nil {
		return key.Private{}, fmt.Errorf("private key file %s: %w; restore it, or delete it for a new key", path, err)
	}
	return k, nil
}

// createKey writes a temporary file in the same directory and links it to path: unlike a rename, a
// link never replaces a key that another process wrote meanwhile.
func createKey(path string) error {
	dir := filepath.Dir(path)
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return err
	}
	k, err := key.Generate(rand.Reader)
	if err != nil {
		return err
	}
	f, err := os.CreateTemp(dir, "."+filepath.Base(path)+"-*") // mode 0600
	if err != nil {
		return err
	}
	defer os.Remove(f.Name())
	_, err = f.WriteString(k.Base64() + "\n")
	if err := errors.Join(err, f.Sync(), f.Close()); err != nil {
		return err
	}
	if err := os.Link(f.Name(), path); err != nil && !errors.Is(err, fs.ErrExist) {
		return err
	}
	return syncDir(dir)
}

func syncDir(dir string) error {
	d, err := os.Open(dir)
	if err != nil {
		return err
	}
	defer d.Close()
	return d.Sync()
}
