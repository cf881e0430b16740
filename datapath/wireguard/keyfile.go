package wireguard

import (
	"crypto/rand"
	"errors"
	"fmt"

	"strait.io/strait/internal/key"
	"strait.io/strait/internal/keyfile"
)

// LoadKey reads the private key in base64 from path. If there is no file, it generates a key and
// writes it, see keyfile.LoadOrMake. It refuses a file that others can access, because anyone who has
// the key can pose as this node.
func LoadKey(path string) (key.Private, error) {
	if path == "" {
		return key.Private{}, errors.New("load private key: no key file is configured")
	}
	text, err := keyfile.LoadOrMake(path, func() (string, error) {
		k, err := key.Generate(rand.Reader)
		return k.Base64(), err
	})
	if err != nil {
		return key.Private{}, fmt.Errorf("private key file: %w", err)
	}
	k, err := key.ParsePrivate(text)
	if err != nil {
		return key.Private{}, fmt.Errorf("private key file %s: %w; restore it, or delete it for a new key", path, err)
	}
	return k, nil
}
