// Package ring keeps a node's history (package history) in files, of which the oldest make room for new ones.
//
// Input is a Turn after each turn of the daemon, which never waits; outputs are the items of a time, and
// what was known at a moment. It must not know how turns differ, nor who asks.
//
// Each file begins with all that was known, and goes on with what changed since, so that the oldest can be
// removed as a whole. Nothing is synced to the disk: a daemon that is killed loses nothing, and a machine
// that loses power a few seconds. Of a file that is torn, what comes before counts.
package ring

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync/atomic"
	"time"

	"strait.io/strait/clustermesh/gossip/statelog"
	"strait.io/strait/daemon/history"
	"strait.io/strait/internal/problem"
)

// magic is the first line of a file.
const magic = "strait history 1\n"

// suffix ends the names of files, which are the numbers of the turn that they begin with.
const suffix = ".history"

// The defaults of Config.
const (
	DefaultMaxBytes = 16 << 20
	// MinBytes is the smallest bound that is of use.
	MinBytes = 256 << 10
)

// Config says where and how much to keep.
type Config struct {
	// Dir need not exist.
	Dir string
	// MaxBytes bounds all files together. With 0 there is no history.
	MaxBytes int64
	// MaxAge, if not 0, is how old the newest turn of a file can become.
	MaxAge time.Duration
	Log    *slog.Logger
}

// queued is how many turns can wait for the disk.
const queued = 64

// Ring is a history in a directory. Make it with New, and call Run once.
type Ring struct {
	cfg    Config
	turns  chan *history.Turn
	missed atomic.Int64
	failed atomic.Pointer[problem.Problem]

	// What follows is owned by Run.
	recorder *history.Recorder
	path     string // of the file that is written; empty before the first
	size     int64
	limit    int64 // of size, from which on a new file begins
}

// New makes a Ring. It opens nothing.
func New(c Config) *Ring { return &Ring{cfg: c, turns: make(chan *history.Turn, queued)} }

// Note takes a turn. It never waits: a turn that comes too fast is merged with the next one.
func (r *Ring) Note(t *history.Turn) {
	if r.cfg.MaxBytes <= 0 {
		return
	}
	select {
	case r.turns <- t:
	default:
		r.missed.Add(1)
	}
}

// Problems returns why nothing is written.
func (r *Ring) Problems() []problem.Problem {
	if p := r.failed.Load(); p != nil {
		return []problem.Problem{*p}
	}
	return nil
}

// retryEvery is how often a disk that refused is tried again.
const retryEvery = 10 * time.Second

// Run writes turns until ctx is done. While the disk refuses, the rest of the daemon goes on, and
// what changes in between is one item later.
func (r *Ring) Run(ctx context.Context) error {
	if r.cfg.MaxBytes <= 0 {
		return nil
	}
	again := time.NewTicker(retryEvery)
	defer again.Stop()
	err := r.open()
	for {
		r.report(err)
		select {
		case <-ctx.Done():
			if err == nil {
				r.drain()
			}
			return nil
		case t := <-r.turns:
			if err == nil {
				err = r.write(t)
			}
			if err != nil {
				r.missed.Add(1)
			}
		case <-again.C:
			if err != nil && !errors.Is(err, errTooLarge) {
				err = r.reopen()
			}
		}
	}
}

// errTooLarge does not change before straitd starts again.
var errTooLarge = errors.New("more than half of history.maxBytes")

// reopen begins a new file after an error. What the recorder knows goes on from there.
func (r *Ring) reopen() error {
	if r.recorder == nil {
		return r.open()
	}
	if err := os.MkdirAll(r.cfg.Dir, 0o700); err != nil {
		return err
	}
	return r.begin()
}

// report keeps and logs why nothing is written, or that it is again.
func (r *Ring) report(err error) {
	was := r.failed.Load()
	switch {
	case err == nil && was == nil:
	case err == nil:
		r.failed.Store(nil)
		r.cfg.Log.Info("problem solved", "code", was.Code, "what", was.String())
	case was == nil:
		p := problem.Named("history", r.cfg.Dir).Problem(problem.Problem{
			Code: problem.HistoryStopped, Warning: true, Message: "nothing is noted: " + err.Error(),
			Try: "make room on the disk, which is tried again every 10 s; or set history.maxBytes",
		})
		r.failed.Store(&p)
		r.cfg.Log.Warn("problem", "code", p.Code, "what", p.String())
	}
}

// drain writes what waits.
func (r *Ring) drain() {
	for {
		select {
		case t := <-r.turns:
			if r.write(t) != nil {
				return
			}
		default:
			return
		}
	}
}

// open continues the newest file, or begins the first.
func (r *Ring) open() error {
	if err := os.MkdirAll(r.cfg.Dir, 0o700); err != nil {
		return err
	}
	files, err := r.files()
	if err != nil {
		return err
	}
	r.recorder = &history.Recorder{}
	if len(files) == 0 {
		return nil
	}
	last := files[len(files)-1]
	replay := &history.Replay{}
	good, err := last.replay(replay, func(*history.Replay) bool { return true })
	if err != nil || replay.Seq() == 0 {
		r.cfg.Log.Warn("the newest file of the history cannot be continued, a new one begins", "file", last.path, "err", err)
		if good <= int64(len(magic)) {
			return os.Remove(last.path)
		}
	}
	if replay.Seq() == 0 {
		return nil
	}
	replay.Plan()
	r.recorder = history.Continue(replay)
	if err != nil { // a new file begins with the next turn
		return nil
	}
	r.path, r.size = last.path, good
	r.limit = max(r.cfg.MaxBytes/fileShare, good)
	return os.Truncate(last.path, good)
}

// fileShare is how many files the ring has at least, unless what is known takes more than a part of that.
const fileShare = 8

// write writes a turn, to a new file if the last one is full.
func (r *Ring) write(t *history.Turn) error {
	missed := r.missed.Swap(0)
	if r.path == "" || r.size >= r.limit {
		if err := r.begin(); err != nil {
			r.missed.Add(missed)
			return err
		}
	}
	frames, err := r.recorder.Note(t, int(missed))
	if err != nil || len(frames) == 0 {
		return err
	}
	if err := r.append(frames); err != nil {
		return err
	}
	if r.limit == 0 { // the first file of all: its first turn is the whole
		r.limit = limitOf(r.cfg.MaxBytes, r.size)
	}
	return r.trim(t.Time())
}

// begin begins a new file.
func (r *Ring) begin() error {
	frames, err := r.recorder.Whole()
	if err != nil {
		return err
	}
	r.path, r.size, r.limit = filepath.Join(r.cfg.Dir, fmt.Sprintf("%016x%s", r.recorder.Seq(), suffix)), 0, 0
	if err := os.WriteFile(r.path, []byte(magic), 0o600); err != nil {
		return err
	}
	r.size = int64(len(magic))
	if len(frames) == 0 {
		return nil
	}
	if err := r.append(frames); err != nil {
		return err
	}
	if r.size > r.cfg.MaxBytes/2 {
		return fmt.Errorf("what is known of the clusterset takes %d bytes alone, %w (%d)", r.size, errTooLarge, r.cfg.MaxBytes)
	}
	r.limit = limitOf(r.cfg.MaxBytes, r.size)
	return nil
}

// limitOf returns when a file is full that begins with so many bytes: most of it should be what changed.
func limitOf(all, first int64) int64 {
	return max(all/fileShare, min(4*first, all/2))
}

func (r *Ring) append(frames [][]byte) error {
	var b []byte
	for _, f := range frames {
		b = statelog.AppendFrame(b, f)
	}
	f, err := os.OpenFile(r.path, os.O_WRONLY, 0)
	if err != nil {
		return err
	}
	defer f.Close()
	if _, err := f.WriteAt(b, r.size); err != nil {
		return fmt.Errorf("write %s: %w", r.path, errors.Join(err, f.Truncate(r.size)))
	}
	r.size += int64(len(b))
	return nil
}

// trim removes the oldest files that are too much or too old.
func (r *Ring) trim(now time.Time) error {
	files, err := r.files()
	if err != nil {
		return err
	}
	all := int64(0)
	for _, f := range files {
		all += f.size
	}
	for _, f := range files[:max(0, len(files)-1)] {
		if all <= r.cfg.MaxBytes && (r.cfg.MaxAge == 0 || now.Sub(f.modified) <= r.cfg.MaxAge) {
			return nil
		}
		if err := os.Remove(f.path); err != nil {
			return err
		}
		all -= f.size
	}
	return nil
}

// file is one file of the ring.
type file struct {
	path     string
	size     int64
	modified time.Time
}

// files returns the files, oldest first.
func (r *Ring) files() (out []file, err error) {
	entries, err := os.ReadDir(r.cfg.Dir)
	if err != nil {
		return nil, err
	}
	for _, e := range entries {
		if !strings.HasSuffix(e.Name(), suffix) || !e.Type().IsRegular() {
			continue
		}
		info, err := e.Info()
		if err != nil {
			continue // it was removed
		}
		out = append(out, file{filepath.Join(r.cfg.Dir, e.Name()), info.Size(), info.ModTime()})
	}
	slices.SortFunc(out, func(a, b file) int { return cmp.Compare(a.path, b.path) })
	return out, nil
}
