package statedir

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"

	"strait.io/strait/clustermesh"
	"strait.io/strait/internal/durable"
)

const (
	uidsFile = "clusters.json"
	// distancesFile holds steps of round-trip time, so that a restart moves no connections.
	distancesFile = "distances.json"
)

// maxStateFile bounds uidsFile and distancesFile, in bytes: more than is written.
const maxStateFile = 256 << 10

// LoadUIDs reads what SaveUIDs wrote; nothing if there is no file.
func LoadUIDs(dir string) (out map[clustermesh.ClusterName]string, err error) {
	if dir == "" {
		return nil, nil
	}
	b, err := durable.Read(filepath.Join(dir, uidsFile), maxStateFile)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err == nil {
		err = json.Unmarshal(b, &out)
	}
	if err != nil {
		return nil, fmt.Errorf("read the clusters' UIDs: %w", err)
	}
	return out, nil
}

// SaveUIDs replaces the file with the clusters' UIDs.
func SaveUIDs(dir string, all map[clustermesh.ClusterName]string) error {
	b, err := json.Marshal(all)
	if err != nil {
		return fmt.Errorf("write the clusters' UIDs: %w", err)
	}
	return durable.Replace(filepath.Join(dir, uidsFile), func(f *os.File) error {
		_, err := f.Write(b)
		return err
	})
}

// LoadDistances reads what SaveDistances wrote; nothing if that cannot be read: it is measured again.
func LoadDistances(dir string) (out map[clustermesh.ClusterName]uint32) {
	b, err := durable.Read(filepath.Join(dir, distancesFile), maxStateFile)
	if dir == "" || err != nil || json.Unmarshal(b, &out) != nil {
		return nil
	}
	return out
}

// SaveDistances replaces the file with the steps of distance; it writes nothing if dir is empty.
func SaveDistances(dir string, steps map[clustermesh.ClusterName]uint32) error {
	if dir == "" {
		return nil
	}
	b, err := json.Marshal(steps)
	if err != nil {
		return err
	}
	return durable.Replace(filepath.Join(dir, distancesFile), func(f *os.File) error {
		_, err := f.Write(b)
		return err
	})
}

// statementFile holds the statement about this node, for a start while no signer is heard.
const (
	statementFile    = "statement.cbor"
	maxStatementFile = 1 << 20 // bytes; more than a signer can send
)

// SaveStatement replaces the file with the statement about this node; it writes nothing if dir is empty.
func SaveStatement(dir string, signed []byte) error {
	if dir == "" {
		return nil
	}
	return durable.Replace(filepath.Join(dir, statementFile), func(f *os.File) error {
		_, err := f.Write(signed)
		return err
	})
}

// LoadStatement reads what SaveStatement wrote; nothing if there is no file.
func LoadStatement(dir string) ([]byte, error) {
	if dir == "" {
		return nil, nil
	}
	signed, err := durable.Read(filepath.Join(dir, statementFile), maxStatementFile)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	return signed, err
}
