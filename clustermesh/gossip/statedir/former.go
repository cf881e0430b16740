package statedir

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"errors"

	"strait.io/strait/clustermesh/gossip/statelog"
	"strait.io/strait/clustermesh/gossip/stream"
	"strait.io/strait/clustermesh/replica"
	"strait.io/strait/internal/durable"
)

const (
	formerMagic = "strait replica 1 "
	maxFormer   = 1 << 30 // bytes; 60 times what 10,000 nodes have
)

// readFormer reads the file of the records as the versions before statelog wrote it.
func readFormer(path string) ([]replica.Entry, error) {
	b, err := durable.Read(path, maxFormer)
	if err != nil {
		return nil, err
	}
	return decodeFormer(b)
}

// decodeFormer decodes a line with the checksum of the rest, and then frames of snapshots.
func decodeFormer(b []byte) ([]replica.Entry, error) {
	line, rest, ok := bytes.Cut(b, []byte("\n"))
	hash, magic := bytes.CutPrefix(line, []byte(formerMagic))
	if !ok || !magic {
		return nil, statelog.ErrNotLog
	}
	if sum := sha256.Sum256(rest); string(hash) != hex.EncodeToString(sum[:]) {
		return nil, errors.New("wrong checksum")
	}
	var entries []replica.Entry
	for r := bytes.NewReader(rest); r.Len() > 0; {
		frame, err := stream.ReadFrame(r, nil)
		if err != nil {
			return nil, err
		}
		m, err := replica.Decode(frame)
		if err != nil {
			return nil, err
		}
		if s, ok := m.(*replica.Snapshot); ok {
			for _, e := range s.Entries {
				entries = append(entries, e.Held())
			}
		}
	}
	return entries, nil
}
