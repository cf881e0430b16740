// Package manifest reads a cluster's objects from a directory of Kubernetes YAML, for machines
// without an API server.
//
// Input is the directory, watched for changes; output is clustermesh.Local. Shell: files and a
// watcher. It must not know what objects mean (package object) nor who uses them.
package manifest

import (
	"context"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/fsnotify/fsnotify"

	"strait.io/strait/clustermesh"
	"strait.io/strait/clustermesh/object"
	"strait.io/strait/clustermesh/policy"
	"strait.io/strait/internal/notify"
	"strait.io/strait/internal/problem"
)

const (
	// quiet is how long the directory must rest before it is read, because editors and kubectl
	// write in steps.
	quiet = 10 * time.Millisecond
	// patience bounds the wait for rest, so that continuous writing does not postpone reading.
	patience = 25 * time.Millisecond
	// resync is the slow interval of re-reading, which catches what the watch cannot see: files
	// behind symlinks, network file systems.
	resync = 5 * time.Second
	// poll is the interval of reading while there is no watch.
	poll = time.Second
)

// Config says which directory holds the cluster's objects.
type Config struct {
	// Dir holds *.yaml, *.yml and *.json; its subdirectories are not read.
	Dir string
	// Cluster is the id of the cluster that they are about.
	Cluster clustermesh.ClusterName
	// Policies are those of the daemon's configuration.
	Policies []policy.Policy
	// Log may be nil.
	Log *slog.Logger
}

// Source is a cluster whose objects are in a directory. Make one with New, then Run it.
type Source struct {
	dir     string
	watched string // absolute, as the watcher reports it
	log     *slog.Logger
	changed notify.Signal

	mu     sync.Mutex
	local  clustermesh.Local
	synced bool

	// Owned by Run.
	files    store
	config   object.Config
	identity os.FileInfo // the directory that the watch is on
	watchErr error
	trouble  string // the errors last published
}

// New makes a Source that knows nothing until it runs.
func New(cfg Config) *Source {
	log := cfg.Log
	if log == nil {
		log = slog.New(slog.DiscardHandler)
	}
	abs, err := filepath.Abs(cfg.Dir)
	if err != nil {
		abs = filepath.Clean(cfg.Dir) // no working directory: reading will report it
	}
	return &Source{dir: cfg.Dir, watched: abs, log: log, changed: notify.New(), files: store{}, config: object.Config{Cluster: cfg.Cluster, Policies: cfg.Policies}}
}

// Local returns what the directory says, and whether it was ever read. Before that nothing is
// known, which is not the same as an empty cluster, and only Problems have a meaning. The caller
// must not change the result.
func (s *Source) Local() (clustermesh.Local, bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.local, s.synced
}

// Changed receives a value after Local has changed; several changes may give only one. It is for
// one receiver.
func (s *Source) Changed() <-chan struct{} { return s.changed }

// Run reads the directory now and whenever it changes, until ctx is done; then it returns nil. If
// the kernel gives no watch (inotify limits), it polls and reports a Problem.
func (s *Source) Run(ctx context.Context) error {
	w, err := fsnotify.NewWatcher()
	if err == nil {
		defer w.Close()
	}
	s.watchErr = err
	for ctx.Err() == nil {
		wait := s.watch(w) // before reading, or a change between the two would be lost
		s.scan()
		s.await(ctx, w, wait)
	}
	return nil
}

// await returns when it is time to read again: after a change and a moment's rest, or after wait.
func (s *Source) await(ctx context.Context, w *fsnotify.Watcher, wait time.Duration) {
	var events <-chan fsnotify.Event
	var errs <-chan error
	if w != nil {
		events, errs = w.Events, w.Errors
	}
	timer := time.NewTimer(wait)
	defer timer.Stop()
	var burst notify.Burst
	for {
		select {
		case <-ctx.Done():
			return
		case <-timer.C:
			return
		case err := <-errs:
			s.log.Warn("watch manifests", "dir", s.dir, "err", err)
			return // events were lost: read everything
		case e := <-events:
			if !s.concerns(e) {
				continue
			}
			timer.Reset(burst.Wait(time.Now(), quiet, patience))
		}
	}
}

// concerns reports whether the directory may read differently after an event.
func (s *Source) concerns(e fsnotify.Event) bool {
	if e.Name == s.watched {
		if e.Has(fsnotify.Remove) || e.Has(fsnotify.Rename) {
			s.identity = nil // a new directory may get the old one's inode number
		}
		return true
	}
	name := filepath.Base(e.Name)
	// "..data" is the symlink that a mounted ConfigMap swaps.
	return filepath.Dir(e.Name) == s.watched && (isManifest(name) || strings.HasPrefix(name, ".."))
}

// watch sets the watch and returns how long to wait for an event. The parent is watched too, to
// notice when the directory itself is created, replaced or renamed.
func (s *Source) watch(w *fsnotify.Watcher) time.Duration {
	if w == nil {
		return poll
	}
	_ = w.Add(filepath.Dir(s.watched)) // best effort: resync sees the same, later
	info, err := os.Stat(s.watched)
	if err != nil {
		s.identity = nil
		return poll
	}
	if slices.Contains(w.WatchList(), s.watched) && s.identity != nil && os.SameFile(info, s.identity) {
		return resync
	}
	_ = w.Remove(s.watched) // a watch on an earlier directory
	if s.watchErr = w.Add(s.watched); s.watchErr != nil {
		return poll
	}
	s.identity = info
	return resync
}

// scan reads the directory and publishes the result if anything changed.
func (s *Source) scan() {
	now, err := readDir(s.dir)
	news := false
	if err == nil {
		news = s.files.update(now)
	}
	trouble := fmt.Sprint(err, s.watchErr)
	_, synced := s.Local()
	if !news && trouble == s.trouble {
		return
	}
	s.trouble = trouble
	next := s.files.local(s.config)
	if err != nil {
		next.Problems = append(next.Problems, unreadable(s.dir, err, synced))
	}
	if s.watchErr != nil {
		next.Problems = append(next.Problems, clustermesh.Problem{
			Code:   problem.DirectoryNotWatched,
			Object: "manifest directory", File: s.dir, Warning: true,
			Message: fmt.Sprintf("cannot be watched (%v): read every %s instead", s.watchErr, poll),
			Try:     "raise fs.inotify.max_user_instances and max_user_watches",
		})
	}
	next.Problems = clustermesh.SortProblems(next.Problems)
	s.publish(next, synced || err == nil)
}

// publish logs problems that are new and tells the receiver of Changed.
func (s *Source) publish(next clustermesh.Local, synced bool) {
	s.mu.Lock()
	old := s.local
	s.local, s.synced = next, synced
	s.mu.Unlock()
	for _, p := range next.Problems {
		if !slices.Contains(old.Problems, p) {
			s.log.Warn("problem", "code", p.Code, "what", p.String())
		}
	}
	s.log.Debug("manifests read", "dir", s.dir, "nodes", len(next.Nodes), "exports", len(next.Exports),
		"endpoints", len(next.Endpoints), "problems", len(next.Problems))
	s.changed.Poke()
}
