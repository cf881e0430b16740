package gossip

import (
	"encoding/base64"
	"fmt"

	"strait.io/strait/internal/keyfile"
)

const keySize = 32

// LoadKey reads the gossip key: 32 bytes in base64, as written by "openssl rand -base64 32", in a
// file that other users of the machine cannot access. Errors never contain the key.
func LoadKey(path string) ([]byte, error) {
	text, err := keyfile.Read(path, keyfile.AllUsers)
	if err != nil {
		return nil, fmt.Errorf("gossip key: %w", err)
	}
	key, err := base64.StdEncoding.DecodeString(text)
	if err != nil || len(key) != keySize {
		return nil, fmt.Errorf("gossip key %s: want 32 bytes in base64; make one with: openssl rand -base64 32", path)
	}
	return key, nil
}
