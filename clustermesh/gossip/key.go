package gossip

import (
	"encoding/base64"
	"fmt"
	"os"
	"strings"
)

const keySize = 32

// LoadKey reads the gossip key: 32 bytes in base64, as written by "openssl rand -base64 32", in a
// file that other users of the machine cannot access. Errors never contain the key.
func LoadKey(path string) ([]byte, error) {
	f, err := os.Open(path)
	if err != nil {
		return nil, fmt.Errorf("read gossip key: %w", err)
	}
	defer f.Close()
	info, err := f.Stat()
	if err != nil {
		return nil, fmt.Errorf("read gossip key %s: %w", path, err)
	}
	if mode := info.Mode().Perm(); mode&0o007 != 0 {
		return nil, fmt.Errorf("gossip key %s: every user can access it (mode %04o); chmod 0600 it", path, mode)
	}
	text := make([]byte, 1024)
	n, err := f.Read(text)
	if err != nil {
		return nil, fmt.Errorf("read gossip key %s: %w", path, err)
	}
	key, err := base64.StdEncoding.DecodeString(strings.TrimSpace(string(text[:n])))
	if err != nil || len(key) != keySize {
		return nil, fmt.Errorf("gossip key %s: want 32 bytes in base64; make one with: openssl rand -base64 32", path)
	}
	return key, nil
}
