// Package logring keeps the last lines of the daemon's log in memory, so that they can be asked for where
// the log itself cannot be read.
//
// Input is what a slog.Logger is given; outputs are the same records to the next handler, and Lines. It
// must not know who writes the log or asks for it.
package logring

import (
	"bytes"
	"context"
	"log/slog"
	"strings"
	"sync"
	"unicode/utf8"

	"strait.io/strait/daemon/api"
)

// Bounds of what is kept, in bytes of text. A line that is longer is cut.
const (
	maxBytes = 128 << 10
	maxLine  = 2 << 10
)

// Ring keeps the last lines. Make it with New.
type Ring struct {
	mu    sync.Mutex
	buf   bytes.Buffer // for one record's attributes
	lines []api.LogLine
	bytes int
	// dropped counts the lines that made room for others.
	dropped uint64
}

// New makes an empty Ring.
func New() *Ring { return &Ring{} }

// Lines returns what is kept, oldest first, and how many lines there were before.
func (r *Ring) Lines() (lines []api.LogLine, dropped uint64) {
	r.mu.Lock()
	defer r.mu.Unlock()
	return append([]api.LogLine(nil), r.lines...), r.dropped
}

// Handler returns a handler that keeps records of at least slog.LevelInfo, and others if next wants them.
func (r *Ring) Handler(next slog.Handler) slog.Handler {
	attrs := slog.NewTextHandler(&r.buf, &slog.HandlerOptions{Level: slog.LevelDebug, ReplaceAttr: func(groups []string, a slog.Attr) slog.Attr {
		if len(groups) == 0 && (a.Key == slog.TimeKey || a.Key == slog.LevelKey || a.Key == slog.MessageKey) {
			return slog.Attr{} // a LogLine has these
		}
		return a
	}})
	return handler{r, next, attrs}
}

// handler is a slog.Handler. Attrs writes into the ring's buffer, so only with its lock.
type handler struct {
	ring        *Ring
	next, attrs slog.Handler
}

// Enabled implements slog.Handler.
func (h handler) Enabled(ctx context.Context, l slog.Level) bool {
	return l >= slog.LevelInfo || h.next.Enabled(ctx, l)
}

// Handle implements slog.Handler.
func (h handler) Handle(ctx context.Context, r slog.Record) error {
	h.ring.keep(ctx, h.attrs, r)
	if !h.next.Enabled(ctx, r.Level) {
		return nil
	}
	return h.next.Handle(ctx, r)
}

// WithAttrs implements slog.Handler.
func (h handler) WithAttrs(attrs []slog.Attr) slog.Handler {
	return handler{h.ring, h.next.WithAttrs(attrs), h.attrs.WithAttrs(attrs)}
}

// WithGroup implements slog.Handler.
func (h handler) WithGroup(name string) slog.Handler {
	return handler{h.ring, h.next.WithGroup(name), h.attrs.WithGroup(name)}
}

func (r *Ring) keep(ctx context.Context, attrs slog.Handler, record slog.Record) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.buf.Reset()
	_ = attrs.Handle(ctx, record) // a buffer takes everything
	line := api.LogLine{Time: record.Time, Level: record.Level.String(), Message: cut(record.Message), Attrs: cut(strings.TrimSpace(r.buf.String()))}
	r.lines = append(r.lines, line)
	r.bytes += size(line)
	n := 0
	for ; r.bytes > maxBytes; n++ {
		r.bytes -= size(r.lines[n])
	}
	clear(r.lines[:n]) // so that their texts are freed before the array is
	r.lines, r.dropped = r.lines[n:], r.dropped+uint64(n)
}

// overhead is about what a line takes besides its texts.
const overhead = 64

func size(l api.LogLine) int { return len(l.Message) + len(l.Attrs) + overhead }

// cut bounds a text.
func cut(s string) string {
	const most = maxLine / 2
	if len(s) <= most {
		return s
	}
	end := most
	for !utf8.RuneStart(s[end]) {
		end--
	}
	return strings.Clone(s[:end]) + " …"
}
