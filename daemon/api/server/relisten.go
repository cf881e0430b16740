package server

import (
	"context"
	"errors"
	"io/fs"
	"log/slog"
	"net"
	"net/http"
	"os"
	"time"
)

// socketLook is how often the server looks whether the socket at its path is still its own.
const socketLook = time.Second

// local is a unix socket on which the server answers.
type local struct {
	path  string
	group int // that may ask, besides root; 0 if none
	log   *slog.Logger

	listener net.Listener // set by listen
	file     fs.FileInfo  // of the socket
}

// listen takes the socket, unless that is done.
func (l *local) listen(ctx context.Context) error {
	if l.listener != nil {
		return nil
	}
	listener, err := listenUnix(ctx, l.path, l.group)
	if err != nil {
		return err
	}
	if l.file, err = os.Lstat(l.path); err != nil {
		listener.Close()
		return err
	}
	l.listener = listener
	return nil
}

// run serves on the socket until ctx ends. If another program removes or replaces the socket, no client can
// reach the daemon any more, so it makes a new one. Answers in progress get a second to finish.
func (l *local) run(ctx context.Context, serve func(context.Context, net.Listener, http.Handler) error, h http.Handler) error {
	for {
		here, lost := context.WithCancel(ctx)
		go l.untilLost(here, lost)
		err := serve(here, l.listener, h)
		lost()
		if err != nil || ctx.Err() != nil {
			return err
		}
		l.log.Warn("another program removed or replaced the socket: making a new one", "socket", l.path)
		if !l.relisten(ctx) {
			return nil
		}
	}
}

// untilLost calls lost once the socket at the path is not the server's own.
func (l *local) untilLost(ctx context.Context, lost func()) {
	for pause(ctx, socketLook) {
		if there, err := os.Lstat(l.path); err != nil || !os.SameFile(l.file, there) {
			lost()
			return
		}
	}
}

// relisten takes the socket again, and retries until ctx ends; it then returns false. A daemon that
// was started meanwhile keeps its socket, and what is no file stays.
func (l *local) relisten(ctx context.Context) bool {
	logged := ""
	for {
		l.listener = nil
		err := l.clear()
		if err == nil {
			err = l.listen(ctx)
		}
		if err == nil {
			return true
		}
		if text := err.Error(); text != logged {
			l.log.Warn("cannot make the socket, everything else works", "socket", l.path, "err", err)
			logged = text
		}
		if !pause(ctx, socketLook) {
			return false
		}
	}
}

// clear removes a plain file where the socket was.
func (l *local) clear() error {
	info, err := os.Lstat(l.path)
	if errors.Is(err, fs.ErrNotExist) || err == nil && !info.Mode().IsRegular() {
		return nil
	}
	return errors.Join(err, os.Remove(l.path))
}

// pause returns false if ctx ends first.
func pause(ctx context.Context, d time.Duration) bool {
	select {
	case <-ctx.Done():
		return false
	case <-time.After(d):
		return true
	}
}
