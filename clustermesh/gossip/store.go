package gossip

import (
	"bufio"
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"time"

	"strait.io/strait/clustermesh"
	"strait.io/strait/clustermesh/gossip/node"
	"strait.io/strait/clustermesh/gossip/stream"
	"strait.io/strait/clustermesh/replica"
	"strait.io/strait/internal/durable"
)

const (
	stateFile  = "replica.cbor"
	stateMagic = "strait replica 1 "
	uidsFile   = "clusters.json"
	// distancesFile holds steps of round-trip time, so that a restart moves no connections.
	distancesFile = "distances.json"
	// savePause is how long a change waits to be saved together with those that follow it, and the
	// least time between two writes of the state. Encoding a large state takes processor time that
	// the turn for the same change needs. So a write computes, frame by frame, for a tenth of its
	// duration (frameShare), and writes take at most a fifth of all time (saveShare). With 100,000
	// endpoints a crash loses the last half minute, which the other daemons send again.
	savePause  = time.Second
	saveShare  = 5
	frameShare = 10
	// saveChunk (records) and saveBytes roughly bound one frame in the file.
	saveChunk = 256
	saveBytes = 256 << 10
)

// corruptError is the error for a state file that exists but cannot be used. aside is its new path.
type corruptError struct {
	path, aside string
	cause       error
}

func (e *corruptError) Error() string { return fmt.Sprintf("read state %s: %v", e.path, e.cause) }
func (e *corruptError) Unwrap() error { return e.cause }

// loadState reads what saveState wrote; nothing if there is no file. A file that cannot be used is
// renamed and reported as a corruptError.
func loadState(dir string) ([]replica.Entry, error) {
	if dir == "" {
		return nil, nil
	}
	path := filepath.Join(dir, stateFile)
	b, err := os.ReadFile(path)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("read state: %w", err)
	}
	entries, err := decodeState(b)
	if err == nil {
		return entries, nil
	}
	aside := path + ".corrupt"
	return nil, &corruptError{path: path, aside: aside, cause: errors.Join(err, os.Rename(path, aside))}
}

// decodeState decodes a state file: a line with the checksum of the rest, and then frames of
// snapshots.
func decodeState(b []byte) ([]replica.Entry, error) {
	line, rest, ok := bytes.Cut(b, []byte("\n"))
	hash, magic := bytes.CutPrefix(line, []byte(stateMagic))
	if !ok || !magic {
		return nil, errors.New("not a state file of this version")
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

// writeState writes what decodeState reads, frame by frame: a second copy of a large clusterset
// would be most of the daemon's memory. It sleeps between frames, until ctx ends.
func writeState(ctx context.Context, f io.WriteSeeker, entries []replica.Entry) error {
	head := func(sum [sha256.Size]byte) []byte { return []byte(stateMagic + hex.EncodeToString(sum[:]) + "\n") }
	if _, err := f.Write(head([sha256.Size]byte{})); err != nil {
		return err
	}
	hash := sha256.New()
	w := bufio.NewWriter(io.MultiWriter(f, hash))
	var frame []byte
	for len(entries) > 0 {
		start := time.Now()
		n, size := 0, 0
		for n < len(entries) && n < saveChunk && (n == 0 || size+entries[n].Size() < saveBytes) {
			size += entries[n].Size()
			n++
		}
		var err error
		if frame, err = replica.Append(frame[:0], &replica.Snapshot{Entries: entries[:n]}); err != nil {
			return err
		}
		if err := stream.WriteFrame(w, frame); err != nil {
			return err
		}
		if entries = entries[n:]; len(entries) > 0 {
			sleep(ctx, (frameShare-1)*time.Since(start))
		}
	}
	if err := w.Flush(); err != nil {
		return err
	}
	if _, err := f.Seek(0, io.SeekStart); err != nil {
		return err
	}
	_, err := f.Write(head([sha256.Size]byte(hash.Sum(nil))))
	return err
}

// saveState replaces the state file. A crash leaves the complete old file or the complete new one.
// It writes slowly until ctx ends, then at full speed.
func saveState(ctx context.Context, dir string, entries []replica.Entry) error {
	return durable.Replace(filepath.Join(dir, stateFile), func(f *os.File) error { return writeState(ctx, f, entries) })
}

// maxStateFile bounds uidsFile and distancesFile, in bytes: more than is written.
const maxStateFile = 256 << 10

// loadUIDs reads what saveUIDs wrote; nothing if there is no file.
func loadUIDs(dir string) (out map[clustermesh.ClusterName]string, err error) {
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

func saveUIDs(dir string, all map[clustermesh.ClusterName]string) error {
	b, err := json.Marshal(all)
	if err != nil {
		return fmt.Errorf("write the clusters' UIDs: %w", err)
	}
	return durable.Replace(filepath.Join(dir, uidsFile), func(f *os.File) error {
		_, err := f.Write(b)
		return err
	})
}

// loadDistances reads what saveDistances wrote; nothing if that cannot be read: it is measured again.
func loadDistances(dir string) (out map[clustermesh.ClusterName]uint32) {
	b, err := durable.Read(filepath.Join(dir, distancesFile), maxStateFile)
	if dir == "" || err != nil || json.Unmarshal(b, &out) != nil {
		return nil
	}
	return out
}

func saveDistances(dir string, steps map[clustermesh.ClusterName]uint32) error {
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

// load reads what an earlier life saved. What cannot be read is missing, and its error is that of a Problem.
func (g *Gossip) load() (saved node.Saved, problems map[string]error) {
	problems = map[string]error{}
	note := func(key string, err error) {
		if err != nil {
			problems[key] = err
		}
	}
	var err error
	saved.Records, err = loadState(g.cfg.StateDir)
	note("state", err)
	saved.Statement, err = loadStatement(g.cfg.StateDir)
	note("state", err)
	saved.Distances = loadDistances(g.cfg.StateDir)
	note("uids", g.loadClusters())
	return saved, problems
}

// keep saves the state after changes, at a bounded rate, until ctx ends. Run saves once more after
// that.
func (g *Gossip) keep(ctx context.Context) {
	if g.cfg.StateDir == "" {
		return
	}
	for pause := savePause; ctx.Err() == nil; {
		select {
		case <-ctx.Done():
		case <-g.dirty:
			sleep(ctx, pause)
			start := time.Now()
			g.save(ctx)
			pause = max(savePause, (saveShare-1)*time.Since(start))
		}
	}
}

// save writes the state, and the clusters' UIDs if they changed: slowly, or at full speed once ctx
// has ended.
func (g *Gossip) save(ctx context.Context) {
	if g.cfg.StateDir == "" {
		return
	}
	entries := ask(g, func(n *node.Node, _ time.Time) []replica.Entry { return n.Entries() })
	err := saveState(ctx, g.cfg.StateDir, entries)
	all, news := g.clusters.unsaved()
	if news {
		if failed := saveUIDs(g.cfg.StateDir, all); failed != nil {
			g.clusters.unsave()
			err = errors.Join(err, failed)
		}
	}
	g.do(func(n *node.Node, now time.Time) {
		if err != nil {
			n.Report("save", stateProblem(err), 0, now)
			g.dirty.Poke()
			return
		}
		for _, key := range []string{"save", "state", "uids"} {
			n.Solved(key, now)
		}
	})
}
