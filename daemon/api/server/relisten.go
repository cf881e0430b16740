package server

import (
	"context"
	"errors"
	"io/fs"
	"os"
	"time"
)

// socketLook is how often the server looks whether the socket at its path is still its own.
const socketLook = time.Second

// serveLocal serves on the socket until ctx ends. If another program removes or replaces the socket,
// no client can reach the daemon any more, so it makes a new one. Answers in progress get a second to
// finish.
func (s *Server) serveLocal(ctx context.Context) error {
	for {
		here, lost := context.WithCancel(ctx)
		go s.untilLost(here, lost)
		err := s.serve(here, s.listener, s.localHandler())
		lost()
		if err != nil || ctx.Err() != nil {
			return err
		}
		s.log.Warn("another program removed or replaced the socket: making a new one", "socket", s.cfg.Socket)
		if !s.relisten(ctx) {
			return nil
		}
	}
}

// untilLost calls lost once the socket at the path is not the server's own.
func (s *Server) untilLost(ctx context.Context, lost func()) {
	for pause(ctx, socketLook) {
		if there, err := os.Lstat(s.cfg.Socket); err != nil || !os.SameFile(s.file, there) {
			lost()
			return
		}
	}
}

// relisten takes the socket again, and retries until ctx ends; it then returns false. A daemon that
// was started meanwhile keeps its socket, and what is no file stays.
func (s *Server) relisten(ctx context.Context) bool {
	logged := ""
	for {
		s.listener = nil
		err := s.clear()
		if err == nil {
			err = s.Listen(ctx)
		}
		if err == nil {
			return true
		}
		if text := err.Error(); text != logged {
			s.log.Warn("cannot make the socket again, everything else works", "socket", s.cfg.Socket, "err", err)
			logged = text
		}
		if !pause(ctx, socketLook) {
			return false
		}
	}
}

// clear removes a plain file where the socket was.
func (s *Server) clear() error {
	info, err := os.Lstat(s.cfg.Socket)
	if errors.Is(err, fs.ErrNotExist) || err == nil && !info.Mode().IsRegular() {
		return nil
	}
	return errors.Join(err, os.Remove(s.cfg.Socket))
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
