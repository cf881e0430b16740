package statedir

import (
	"bufio"
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"os"
	"path/filepath"
	"testing"

	"strait.io/strait/clustermesh/gossip/stream"
	"strait.io/strait/clustermesh/replica"
)

// encodeFormer makes a file as the versions before wrote it.
func encodeFormer(t testing.TB, entries ...replica.Entry) []byte {
	t.Helper()
	var rest bytes.Buffer
	w := bufio.NewWriter(&rest)
	for _, e := range entries {
		frame, err := replica.Encode(&replica.Snapshot{Entries: []replica.Entry{e}})
		must(t, errors.Join(err, stream.WriteFrame(w, frame)))
	}
	must(t, w.Flush())
	sum := sha256.Sum256(rest.Bytes())
	return append([]byte(formerMagic+hex.EncodeToString(sum[:])+"\n"), rest.Bytes()...)
}

// TestFormerFile: the file of an earlier version is read, and the first save replaces it.
func TestFormerFile(t *testing.T) {
	dir := t.TempDir()
	must(t, os.WriteFile(filepath.Join(dir, recordsFile), encodeFormer(t, entry(t, origin(1), 1), entry(t, origin(2), 7)), 0o600))
	r, entries, err := OpenRecords(dir)
	if err != nil || len(entries) != 2 || !r.Whole() {
		t.Fatalf("read %v: %v", versions(entries), err)
	}
	must(t, r.Replace(t.Context(), entries))
	if again, got := opened(t, dir); again.Whole() || len(got) != 2 || got[origin(2)] != entry(t, origin(2), 7).Version() {
		t.Errorf("read %v", got)
	}
}

func FuzzFormer(f *testing.F) {
	f.Add(encodeFormer(f, entry(f, origin(1), 1)))
	f.Add([]byte(formerMagic + "\n"))
	f.Fuzz(func(t *testing.T, b []byte) {
		if entries, err := decodeFormer(b); err == nil {
			encodeFormer(t, entries...)
		}
	})
}
