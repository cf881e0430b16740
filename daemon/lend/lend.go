// Package lend hands what a node needs to lead its cluster from a pod to the daemon of the same node:
// a token for the API server, and the root key of the cluster. Both are in a directory of the node.
//
// Inputs of the Lender are the files that the kubelet mounts for its pod. Its outputs are copies, in a
// directory of its own, so that two lenders on one node do not disturb each other. Look is the daemon's
// side. It must not know an API server, or what the token is good for.
package lend

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"os"
	"path/filepath"
	"time"

	"strait.io/strait/internal/durable"
)

// Files of a loan. A loan counts while alive is fresh.
const (
	tokenFile = "token"
	rootFile  = "root.key"
	aliveFile = "alive"
)

const (
	// beat is how often a lender gives a sign of life, and looks whether its files changed.
	beat = time.Second
	// linger is how long a lender that was stopped waits after it took its files away. A token ends
	// with its pod, and the daemon still gives up the Lease with it.
	linger = 4 * time.Second
)

// Lender lends what is in some files.
type Lender struct {
	// Dir is the directory that the daemon looks at, and Name the lender's own below it.
	Dir, Name string
	// Token and Root are files. Root is empty if the cluster signs nothing, and need not exist yet.
	Token, Root string
	Log         *slog.Logger
}

// Run lends until ctx is done, and then takes everything away. It returns an error if it cannot lend at
// first. Later, it stops to give signs of life while it cannot.
func (l Lender) Run(ctx context.Context) error {
	if l.Name == "" || filepath.Base(l.Name) != l.Name || l.Name == "." || l.Name == ".." {
		return fmt.Errorf("the name of a lender is that of a directory, not %q", l.Name)
	}
	own := filepath.Join(l.Dir, l.Name)
	if err := private(l.Dir); err != nil {
		return err
	}
	if err := l.lend(own); err != nil {
		return errors.Join(err, remove(own))
	}
	l.Log.Info("lending what this node needs to lead its cluster", "directory", own)
	failed := ""
	for ctx.Err() == nil {
		select {
		case <-ctx.Done():
		case <-time.After(beat):
			text := ""
			if err := l.lend(own); err != nil {
				text = err.Error()
			}
			if text != failed && text != "" {
				l.Log.Error("cannot lend", "err", text)
			}
			failed = text
		}
	}
	err := remove(own)
	time.Sleep(linger)
	return err
}

// Check returns an error if no lender of this name and directory has given a sign of life lately.
// The pods of strait-leader probe with it.
func (l Lender) Check(now time.Time) error {
	st, err := os.Stat(filepath.Join(l.Dir, l.Name, aliveFile))
	if err != nil {
		return fmt.Errorf("nothing is lent: %w", err)
	}
	if age := now.Sub(st.ModTime()); age > behind {
		return fmt.Errorf("the lender has given no sign of life for %s", age.Round(time.Second))
	}
	return nil
}

// lend copies what changed, and gives a sign of life.
func (l Lender) lend(own string) error {
	for _, x := range []struct{ from, to string }{{l.Root, rootFile}, {l.Token, tokenFile}} {
		if x.from == "" {
			continue
		}
		text, err := os.ReadFile(x.from)
		if x.to == rootFile && errors.Is(err, fs.ErrNotExist) {
			// There is none yet, or none any more.
			if err := os.Remove(filepath.Join(own, x.to)); err != nil && !errors.Is(err, fs.ErrNotExist) {
				return err
			}
			continue
		}
		if err != nil {
			return fmt.Errorf("read what to lend: %w", err)
		}
		if err := put(filepath.Join(own, x.to), text); err != nil {
			return err
		}
	}
	alive, now := filepath.Join(own, aliveFile), time.Now()
	err := os.Chtimes(alive, now, now)
	if errors.Is(err, fs.ErrNotExist) {
		err = put(alive, nil)
	}
	return err
}

// put writes a file, unless it has this content.
func put(path string, content []byte) error {
	if have, err := os.ReadFile(path); err == nil && bytes.Equal(have, content) {
		return nil
	}
	return durable.Replace(path, func(f *os.File) error {
		_, err := f.Write(content)
		return err
	})
}

// private makes a directory that only root can enter, or takes one away from others: the kubelet makes
// it with mode 0755.
func private(dir string) error {
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return err
	}
	return os.Chmod(dir, 0o700)
}

// remove takes a loan away, first of all its sign of life.
func remove(own string) error {
	if err := os.Remove(filepath.Join(own, aliveFile)); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	return os.RemoveAll(own)
}
