package daemon

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"log/slog"
	"strings"
	"time"

	"strait.io/strait/clustermesh"
	"strait.io/strait/clustermesh/authority"
	"strait.io/strait/clustermesh/manifest"
	"strait.io/strait/daemon/identity"
	"strait.io/strait/daemon/trustlevel"
	"strait.io/strait/internal/notify"
	"strait.io/strait/internal/problem"
)

// checkPatience is how long a check waits for the API server.
const checkPatience = 20 * time.Second

// Check checks what a valid config refers to: its files, and the API server if that is the source.
// It writes what it found to w; file is the path that the config was read from. It returns an error
// if anything is wrong; warnings do not count.
func Check(ctx context.Context, w io.Writer, file string, c Config) error {
	local, cluster, err := checkSource(ctx, c)
	if err != nil {
		local.Problems = append(local.Problems, clustermesh.Problem{Code: problem.SourceUnreadable, Message: err.Error()})
	}
	if _, err := loadGossipKeys(c); err != nil {
		local.Problems = append(local.Problems, clustermesh.Problem{Code: problem.GossipKeyUnreadable, Message: err.Error()})
	}
	local.Problems = append(local.Problems, checkAuthority(c, cluster)...)
	failed := 0
	for _, p := range clustermesh.SortProblems(local.Problems) {
		word := "warning"
		if !p.Warning {
			word = "error"
			failed++
		}
		fmt.Fprintf(w, "%-8s %s %s\n", word, p.Code, p)
	}
	if failed > 0 {
		return fmt.Errorf("%s is well-formed, but what it refers to has problems: %d", file, failed)
	}
	fmt.Fprintf(w, "%s is valid: cluster %s, node %s; %d nodes, %d exports, %d endpoints in %s\n", file,
		cluster, c.Node, len(local.Nodes), len(local.Exports), len(local.Endpoints), c.Source.where())
	return nil
}

// checkAuthority checks the files with keys and pins.
func checkAuthority(c Config, own clustermesh.ClusterName) (out []clustermesh.Problem) {
	root, err := loadRoot(c.Authority.RootFile)
	if err != nil {
		out = append(out, clustermesh.Problem{Code: problem.PinsFile, Message: err.Error()})
	}
	if c.Authority.PinsFile == "" {
		return out
	}
	text, err := pinsAndMembers(c.Authority)()
	if c.Authority.later() && (errors.Is(err, fs.ErrNotExist) || trustlevel.Awaited(text, own)) {
		return out // they come later
	}
	if err == nil {
		var pins authority.Pins
		if pins, err = trustlevel.ParsePins(text, own, root); err == nil {
			err = pins.Overlap()
		}
	}
	if err != nil {
		out = append(out, clustermesh.Problem{
			Code: problem.PinsFile, Field: "authority.pinsFile", File: c.Authority.PinsFile, Message: strings.ReplaceAll(err.Error(), "\n", ", "),
			Try: "correct the file, or write it again with strait clusterset accept",
		})
	}
	return out
}

// checkSource reads the cluster's objects and its name once.
func checkSource(ctx context.Context, c Config) (clustermesh.Local, clustermesh.ClusterName, error) {
	if c.Source.Kubernetes == nil {
		own := clustermesh.ClusterName(c.Cluster)
		return manifest.Read(c.Source.Manifest, own, c.policies()...), own, nil
	}
	k, err := openKubernetes(c, notify.New(), slog.New(slog.DiscardHandler))
	if err != nil {
		return clustermesh.Local{}, "", err
	}
	ctx, cancel := context.WithTimeout(ctx, checkPatience)
	done := make(chan struct{})
	go func() {
		defer close(done)
		_ = k.source.Run(ctx) // always returns nil
	}()
	defer func() { cancel(); <-done }()
	for {
		local, synced := k.source.Local()
		w, waiting, err := identity.Decide(c.identity(), k.source.Identity(), who{}, false)
		if err != nil || synced && waiting == "" {
			return local, w.Cluster, err
		}
		select {
		case <-ctx.Done():
			if waiting == "" {
				waiting = "the cluster's objects"
			}
			return local, "", fmt.Errorf("%s: not read within %s: still waiting for %s", k.host, checkPatience, waiting)
		case <-k.source.Changed():
		}
	}
}
