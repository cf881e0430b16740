// Package statedir reads and writes what a daemon keeps in its state directory between its lives.
//
// Inputs are the directory and what to save. Outputs are what an earlier life saved, and an error for what
// cannot be read: a daemon starts in any case, with what can be read. It must not know who needs
// what it reads, nor when to save.
package statedir

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"iter"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"strait.io/strait/clustermesh"
	"strait.io/strait/clustermesh/gossip/statelog"
	"strait.io/strait/clustermesh/replica"
)

// recordsFile holds the newest records.
const recordsFile = "replica.cbor"

const (
	// A large change is written in steps of about stepBytes, and encoding takes a tenth of the time
	// (stepShare): the turn for the same change needs the processor.
	stepBytes = 256 << 10
	stepShare = 10
)

// Records is the file with the newest records: a statelog with a value for each origin. One goroutine uses
// it.
type Records struct {
	log *statelog.Log
	// has are the versions in the file, and whole is true if only Replace can write it.
	has   map[clustermesh.Origin]replica.Version
	whole bool
}

// Corrupt is the error for a file of which nothing can be used. Aside is its new path.
type Corrupt struct {
	Path, Aside string
	Cause       error
}

func (e *Corrupt) Error() string { return fmt.Sprintf("read state %s: %v", e.Path, e.Cause) }
func (e *Corrupt) Unwrap() error { return e.Cause }

// OpenRecords reads the records that were saved; none if there is no file. The Records can be used in any
// case. Of a file that is damaged, what comes before the damage is read, and the error is a
// statelog.Damage. A file of another
// format, or of which nothing can be read, is renamed, and the error is a Corrupt.
func OpenRecords(dir string) (*Records, []replica.Entry, error) {
	path := filepath.Join(dir, recordsFile)
	log, err := statelog.Open(path)
	r := &Records{log: log, has: map[clustermesh.Origin]replica.Version{}}
	var entries []replica.Entry
	switch _, damaged := errors.AsType[*statelog.Damage](err); {
	case errors.Is(err, fs.ErrNotExist):
		r.whole = true
		return r, nil, nil
	case errors.Is(err, statelog.ErrNotLog):
		r.whole = true
		entries, err = readFormer(path)
	case err == nil || damaged:
		var failed error
		if entries, failed = r.read(); failed != nil {
			r.whole, err = true, errors.Join(err, failed)
		}
		return r, entries, err
	}
	if err != nil {
		r.whole = true
		aside := path + ".corrupt"
		return r, nil, &Corrupt{Path: path, Aside: aside, Cause: errors.Join(err, os.Rename(path, aside))}
	}
	return r, entries, nil
}

// read decodes the values of the log. What this build cannot read has no version.
func (r *Records) read() (entries []replica.Entry, err error) {
	err = r.log.Values(func(key string, value []byte) error {
		o := originOf(key)
		r.has[o] = replica.Version{}
		m, err := replica.Decode(value)
		s, ok := m.(*replica.Snapshot)
		if err != nil || !ok || len(s.Entries) != 1 || s.Entries[0].Record.Origin != o {
			return nil
		}
		entries = append(entries, s.Entries[0].Held())
		r.has[o] = s.Entries[0].Version()
		return nil
	})
	return entries, err
}

func keyOf(o clustermesh.Origin) string { return o.String() }

func originOf(key string) clustermesh.Origin {
	c, n, _ := strings.Cut(key, "/")
	return clustermesh.Origin{Cluster: clustermesh.ClusterName(c), Node: clustermesh.NodeName(n)}
}

// Origins returns the origins of which the file has a record. A Save of them drops those that are not held.
func (r *Records) Origins() []clustermesh.Origin { return slices.Collect(maps.Keys(r.has)) }

// Whole reports whether the file must be written as a whole, by Replace: there is none, it has the format
// of an earlier version, or another program changed it.
func (r *Records) Whole() bool { return r.whole || errors.Is(r.log.Intact(), statelog.ErrChanged) }

// Save brings the file up to date with what is held of the origins. It costs what differs, and now and then a
// copy of the file. It writes slowly until ctx ends, then at full speed. After an error, what was not
// saved can be saved again.
func (r *Records) Save(ctx context.Context, origins []clustermesh.Origin, held map[clustermesh.Origin]replica.Entry) error {
	set, remove := differing(r.has, origins, held)
	var step []statelog.Op
	size := 0
	for op, err := range ops(ctx, set, remove) {
		if err != nil {
			return err
		}
		step = append(step, op)
		if size += len(op.Value); size >= stepBytes {
			if err := r.append(step, held); err != nil {
				return err
			}
			step, size = nil, 0
		}
	}
	if len(step) > 0 || r.log.Damaged() {
		if err := r.append(step, held); err != nil {
			return err
		}
	}
	if !r.log.Bloated() {
		return nil
	}
	err := r.log.Compact()
	r.whole = err != nil // the next save writes what is held instead
	return err
}

func (r *Records) append(step []statelog.Op, held map[clustermesh.Origin]replica.Entry) error {
	if err := r.log.Append(step); err != nil {
		return err
	}
	for _, op := range step {
		o := originOf(op.Key)
		if op.Remove {
			delete(r.has, o)
		} else {
			r.has[o] = held[o].Version()
		}
	}
	return nil
}

// Replace writes a file with these records only, slowly until ctx ends, then at full speed. After an error,
// the old file is unchanged, and Whole is true.
func (r *Records) Replace(ctx context.Context, entries []replica.Entry) error {
	r.whole = true
	if err := r.log.Replace(ops(ctx, entries, nil)); err != nil {
		return err
	}
	clear(r.has)
	for _, e := range entries {
		r.has[e.Record.Origin] = e.Version()
	}
	r.whole = false
	return nil
}

// differing returns the records that a file with the versions has lacks of the origins, and the origins of
// which it has a record though none is held.
func differing(has map[clustermesh.Origin]replica.Version, origins []clustermesh.Origin, held map[clustermesh.Origin]replica.Entry) (set []replica.Entry, remove []clustermesh.Origin) {
	for _, o := range origins {
		version, saved := has[o]
		e, is := held[o]
		switch {
		case is && (!saved || version != e.Version()):
			set = append(set, e)
		case !is && saved:
			remove = append(remove, o)
		}
	}
	return set, remove
}

// ops encodes changes one after the other. It sleeps in between, until ctx ends.
func ops(ctx context.Context, set []replica.Entry, remove []clustermesh.Origin) iter.Seq2[statelog.Op, error] {
	return func(yield func(statelog.Op, error) bool) {
		var b []byte
		size, start := 0, time.Now()
		for _, e := range set {
			var err error
			if b, err = replica.Append(nil, &replica.Snapshot{Entries: []replica.Entry{e}}); err != nil {
				yield(statelog.Op{}, err)
				return
			}
			if !yield(statelog.Op{Key: keyOf(e.Record.Origin), Value: b}, nil) {
				return
			}
			if size += len(b); size >= stepBytes {
				rest(ctx, (stepShare-1)*time.Since(start))
				size, start = 0, time.Now()
			}
		}
		for _, o := range remove {
			if !yield(statelog.Op{Key: keyOf(o), Remove: true}, nil) {
				return
			}
		}
	}
}

// rest sleeps for d, or until ctx ends.
func rest(ctx context.Context, d time.Duration) {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-ctx.Done():
	case <-t.C:
	}
}
