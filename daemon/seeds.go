package daemon

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"net/netip"
	"os"
	"slices"
	"strings"
	"sync"
	"time"

	"strait.io/strait/clustermesh"
	"strait.io/strait/clustermesh/gossip"
	"strait.io/strait/internal/notify"
	"strait.io/strait/internal/problem"
)

// seedsPoll is how often the file is read. It is polled because a mounted Secret changes by
// swapping symlinks, at any depth.
const seedsPoll = 2 * time.Second

// seedsFile is the seeds file, as last read.
type seedsFile struct {
	path    string
	changed notify.Signal

	mu    sync.Mutex
	text  string
	read  bool
	cause error // why it cannot be read now
}

func newSeedsFile(path string, changed notify.Signal) *seedsFile {
	s := &seedsFile{path: path, changed: changed}
	s.look()
	return s
}

// run polls the file until ctx is done. While it cannot be read, the last seeds stay in force.
func (s *seedsFile) run(ctx context.Context) error {
	if s.path == "" {
		return nil
	}
	for {
		select {
		case <-ctx.Done():
			return nil
		case <-time.After(seedsPoll):
		}
		if s.look() {
			s.changed.Poke()
		}
	}
}

// look reads the file and reports whether anything changed.
func (s *seedsFile) look() bool {
	if s.path == "" {
		return false
	}
	b, err := os.ReadFile(s.path)
	s.mu.Lock()
	defer s.mu.Unlock()
	news := fmt.Sprint(err) != fmt.Sprint(s.cause) || err == nil && (!s.read || string(b) != s.text)
	s.cause = err
	if err == nil {
		s.text, s.read = string(b), true
	}
	return news
}

// seeds returns the seeds in the file, and what is wrong with it. A missing file is not a Problem:
// a cluster that is not connected to others has none.
func (s *seedsFile) seeds() (out []string, problems []clustermesh.Problem) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.cause != nil && !errors.Is(s.cause, fs.ErrNotExist) {
		problems = append(problems, clustermesh.Problem{Code: problem.SeedsFile, Object: "seeds", Field: "gossip.seedsFile", File: s.path, Warning: true,
			Message: fmt.Sprintf("cannot be read, its last seeds stay in force: %v", s.cause), Try: "make it readable for straitd"})
	}
	return parseSeeds(s.text), problems
}

// parseSeeds reads one seed per line. A # begins a comment.
func parseSeeds(text string) (out []string) {
	for line := range strings.Lines(text) {
		line, _, _ = strings.Cut(line, "#")
		if line = strings.TrimSpace(line); line != "" && !slices.Contains(out, line) {
			out = append(out, line)
		}
	}
	return out
}

// seed tells gossip where to find other nodes: the seeds, and the nodes of its own cluster.
func (d *Daemon) seed(local clustermesh.Local) []clustermesh.Problem {
	fromFile, problems := d.seeds.seeds()
	all := gossip.Seeds{Listed: slices.Concat(d.config.Gossip.Seeds, fromFile)}
	if d.kube != nil {
		all.Hints = nodeHints(local.Nodes, d.self().Node, d.who.Advertise.Port())
	}
	if err := d.gossip.SetSeeds(all); err != nil {
		problems = append(problems, clustermesh.Problem{Code: problem.SeedsFile, Object: "seeds", Field: "gossip.seedsFile", File: d.config.Gossip.SeedsFile,
			Message: strings.ReplaceAll(err.Error(), "\n", ", "), Try: "write one HOST:PORT per line"})
	}
	return problems
}

// nodeHints returns the addresses of the cluster's other nodes, with the port that all of them
// listen on.
func nodeHints(nodes []clustermesh.Node, self clustermesh.NodeName, port uint16) (out []netip.AddrPort) {
	for _, n := range nodes {
		if n.Name != self && len(n.Addresses) > 0 {
			out = append(out, netip.AddrPortFrom(n.Addresses[0], port))
		}
	}
	return out
}
