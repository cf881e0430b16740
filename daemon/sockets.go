package daemon

import (
	"context"
	"maps"
	"path/filepath"
	"strings"
	"sync"
	"time"

	"strait.io/strait/datapath/sockdestroy"
	"strait.io/strait/datapath/socklb/cgroup"
	"strait.io/strait/internal/problem"
)

// socketsAge is how long what was seen of sockets is good for: looking goes through all sockets of the
// machine, and several clients can ask at once.
const socketsAge = 500 * time.Millisecond

// sockets looks at the sockets that the load balancer translated, when asked.
type sockets struct {
	mu      sync.Mutex
	until   time.Time
	last    seenSockets
	cgroups map[uint64]string // the paths of cgroups by ID, of those seen last; "" for one that has none
}

// seenSockets are translated sockets as they were at one moment.
type seenSockets struct {
	records []sockdestroy.Record
	found   map[uint64]sockdestroy.Socket // by cookie
	cgroups map[uint64]string             // the paths of cgroups by ID, below the one that is served
	// programs are those that have the sockets, by cookie, as far as they are known.
	programs map[uint64]string
	partial  string // why some sockets could not be looked at; empty if all could
}

// look returns the sockets. It takes no lock that a turn holds.
func (s *sockets) look(ctx context.Context, k *kernel) (seenSockets, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if time.Now().Before(s.until) {
		return s.last, nil
	}
	lb := k.balancer()
	if lb == nil {
		return seenSockets{}, problem.Refuse("see why with strait status", "the load balancer is not attached")
	}
	records, err := k.records()
	if err != nil {
		return seenSockets{}, err
	}
	seen := seenSockets{records: records, found: map[uint64]sockdestroy.Socket{}}
	cookies := make(map[uint64]bool, len(records))
	for _, r := range records {
		if r.Cookie != 0 {
			cookies[r.Cookie] = true
		}
	}
	switch {
	case len(cookies) == 0:
	case !k.config.BPF.destroySockets():
		seen.partial = "bpf.destroySockets is false, so this daemon does not look into the networks of pods"
	default:
		if seen.found, err = sockdestroy.Look(ctx, "/proc", cookies); err != nil {
			seen.partial = err.Error()
		}
	}
	seen.cgroups = s.paths(lb.Cgroup(), seen.found)
	dirs := make(map[uint64]string, len(seen.cgroups))
	for id, path := range seen.cgroups {
		dirs[id] = above(lb.Cgroup(), path)
	}
	seen.programs = sockdestroy.Programs("/proc", dirs, seen.found)
	if ctx.Err() == nil {
		s.last, s.until = seen, time.Now().Add(socketsAge)
	}
	return seen, nil
}

// paths returns the paths of the sockets' cgroups below top. It walks the tree of cgroups only if there
// is one that the last look did not have. Without a path, a client is known by its address.
func (s *sockets) paths(top string, found map[uint64]sockdestroy.Socket) map[uint64]string {
	now, unknown := map[uint64]string{}, map[uint64]bool{}
	for _, x := range found {
		path, known := s.cgroups[x.Cgroup]
		if now[x.Cgroup] = path; !known && x.Cgroup != 0 {
			unknown[x.Cgroup] = true
		}
	}
	if len(unknown) > 0 {
		if paths, err := cgroup.Search(unknown); err == nil {
			for id, path := range paths {
				now[id] = below(top, path)
			}
		}
	}
	s.cgroups = now
	return maps.Clone(now)
}

// below returns a cgroup's path below another; all of it if it is elsewhere, and "" for the other itself.
func below(top, path string) string {
	rel, err := filepath.Rel(top, path)
	switch {
	case err != nil || strings.HasPrefix(rel, ".."):
		return path
	case rel == ".":
		return ""
	}
	return rel
}

// above is the inverse of below; "" for no path.
func above(top, path string) string {
	if path == "" || filepath.IsAbs(path) {
		return path
	}
	return filepath.Join(top, path)
}

// podUID returns the UID of the pod that a cgroup belongs to; "" if it is no pod's. See isPodCgroup.
func podUID(path string) string {
	for name := range strings.SplitSeq(path, "/") {
		if uid, is := strings.CutPrefix(name, "pod"); is {
			return uid
		}
		if name, slice := strings.CutSuffix(name, ".slice"); slice {
			if _, uid, is := strings.Cut(name, "-pod"); is {
				return strings.ReplaceAll(uid, "_", "-")
			}
		}
	}
	return ""
}
