// Package statelog keeps a map of keys to values in a file, to which only what changes is appended.
//
// Inputs are a path and Ops. Outputs are the values that the file holds, and, if the file is damaged, how
// much of it cannot be read. It must not know what keys and values are.
//
// The file is a line, and then entries (format.go), each in a frame with a length and a checksum (frame.go);
// logs of another kind use the frames alone. The last entry of a key counts (index.go). A crash in the
// middle of a write leaves a beginning of it; the entries before the first one that cannot be read count,
// and the next write replaces the rest. Compact and Replace write a new file beside the old one, and
// rename it. All of it is bounded when it is read, because a disk or an operator may have written it.
//
// Why there is no library for it: go.etcd.io/bbolt maps its file, and a damaged page ends the process with a
// fault or a panic, where a daemon must start with what can be read; it also writes whole pages and never
// makes its file smaller. tidwall/wal and hashicorp/raft-wal are logs of consecutive numbers: they can
// drop their beginning, but not compact by key. Stores with tables and levels (pebble, badger) are larger
// than straitd, for a file that one goroutine writes.
package statelog

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"iter"
	"os"

	"strait.io/strait/internal/durable"
)

// Log is a log that one goroutine reads and writes. It keeps no file open, so that it notices when the file
// is removed or replaced.
type Log struct {
	path  string
	file  fs.FileInfo // the file after the last read or write; nil if there is none
	index *index
	buf   []byte // of the last entries that were read or written
}

// keptBuffer bounds the buffer that is kept between two calls, in bytes.
const keptBuffer = 1 << 20

func (l *Log) trim() {
	if cap(l.buf) > keptBuffer {
		l.buf = nil
	}
}

// Open reads which values a log has. If a part of it cannot be read, the error is a Damage, and the
// log can be used. With fs.ErrNotExist or ErrNotLog, it has no values, and only Replace can write
// it.
func Open(path string) (*Log, error) {
	l := &Log{path: path, index: newIndex()}
	f, err := os.Open(path)
	if err != nil {
		return l, err
	}
	defer f.Close()
	info, err := f.Stat()
	if err != nil {
		return l, err
	}
	x, err := scan(f, info.Size())
	if x == nil {
		return l, fmt.Errorf("read %s: %w", path, err)
	}
	l.file, l.index = info, x
	if err != nil {
		return l, fmt.Errorf("read %s: %w", path, err)
	}
	return l, nil
}

// Len returns how many keys have a value.
func (l *Log) Len() int { return len(l.index.spans) }

// Size returns the size of the log in bytes, and of the entries that count.
func (l *Log) Size() (all, live int64) { return l.index.size, l.index.live }

// Bloated reports whether the log should be compacted: more than half of it counts no more.
func (l *Log) Bloated() bool { return l.index.bloated() }

// Damaged reports whether the log has a part that cannot be read. The next write drops it; Append(nil) does.
func (l *Log) Damaged() bool { return l.file != nil && l.file.Size() > l.index.size }

// ErrChanged means that the file was removed or replaced since this Log read or wrote it. Only Replace
// writes it again.
var ErrChanged = errors.New("the file was removed or changed by another program")

// Intact returns ErrChanged if the file is not the one that this Log read or wrote, or another error if that
// cannot be found out.
func (l *Log) Intact() error {
	info, err := os.Stat(l.path)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	return l.same(info, err)
}

func (l *Log) same(info fs.FileInfo, err error) error {
	if err != nil || l.file == nil || !os.SameFile(info, l.file) || info.Size() != l.file.Size() {
		return ErrChanged
	}
	return nil
}

// open opens the file, if it is intact.
func (l *Log) open(flag int) (*os.File, error) {
	f, err := os.OpenFile(l.path, flag, 0)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, ErrChanged
	}
	if err != nil {
		return nil, err
	}
	if err := l.same(f.Stat()); err != nil {
		f.Close()
		return nil, err
	}
	return f, nil
}

// Values calls yield with each key and its value, in the order in which they were written, until it returns
// an error. The value is valid until yield returns.
func (l *Log) Values(yield func(key string, value []byte) error) error {
	f, err := l.open(os.O_RDONLY)
	if err != nil {
		return fmt.Errorf("read %s: %w", l.path, err)
	}
	defer f.Close()
	defer l.trim()
	for _, key := range l.index.keys() {
		op, err := l.read(f, key)
		if err == nil {
			err = yield(key, op.Value)
		}
		if err != nil {
			return fmt.Errorf("read %s: %w", l.path, err)
		}
	}
	return nil
}

// read reads the entry of a key. It is left in l.buf, and the Op shares its memory.
func (l *Log) read(f io.ReaderAt, key string) (Op, error) {
	s := l.index.spans[key]
	if int64(cap(l.buf)) < s.size {
		l.buf = make([]byte, s.size)
	}
	l.buf = l.buf[:s.size]
	if _, err := f.ReadAt(l.buf, s.at); err != nil {
		return Op{}, fmt.Errorf("entry at byte %d: %w", s.at, err)
	}
	op, err := decodeEntry(l.buf)
	if err == nil && (op.Key != key || op.Remove) {
		err = errors.New("it is another one")
	}
	if err != nil {
		return Op{}, fmt.Errorf("entry at byte %d: %w", s.at, err)
	}
	return op, nil
}

// Append writes changes, and waits until they are on disk. After an error, the log is as before; ErrChanged
// means that the file is not.
func (l *Log) Append(ops []Op) error {
	defer l.trim()
	var sizes []int64
	l.buf = l.buf[:0]
	for _, op := range ops {
		before := len(l.buf)
		var err error
		if l.buf, err = appendOp(l.buf, op); err != nil {
			return err
		}
		sizes = append(sizes, int64(len(l.buf)-before))
	}
	f, err := l.open(os.O_RDWR)
	if err != nil {
		return fmt.Errorf("append to %s: %w", l.path, err)
	}
	defer f.Close()
	if l.Damaged() {
		if err := f.Truncate(l.index.size); err != nil {
			return fmt.Errorf("append to %s: %w", l.path, err)
		}
	}
	_, err = f.WriteAt(l.buf, l.index.size)
	if err == nil {
		err = f.Sync()
	}
	if err != nil {
		err = errors.Join(err, f.Truncate(l.index.size)) // or the next Append does it
	}
	info, failed := f.Stat()
	if failed != nil {
		info = nil // so the next use finds it changed
	}
	l.file = info
	if err := errors.Join(err, failed); err != nil {
		return fmt.Errorf("append to %s: %w", l.path, err)
	}
	for i, op := range ops {
		l.index.add(op.Key, op.Remove, sizes[i])
	}
	return nil
}

// Replace writes a new file, with these Ops only, whatever was there before. After an error, the old one is
// unchanged.
func (l *Log) Replace(ops iter.Seq2[Op, error]) error {
	return l.rewrite(func(w io.Writer, x *index) error {
		for op, err := range ops {
			if err != nil {
				return err
			}
			if l.buf, err = appendOp(l.buf[:0], op); err != nil {
				return err
			}
			if _, err := w.Write(l.buf); err != nil {
				return err
			}
			x.add(op.Key, op.Remove, int64(len(l.buf)))
		}
		return nil
	})
}

// Compact writes a new file with the entries that count. It verifies them; after an error, the old file is
// unchanged.
func (l *Log) Compact() error {
	old, err := l.open(os.O_RDONLY)
	if err != nil {
		return fmt.Errorf("compact %s: %w", l.path, err)
	}
	defer old.Close()
	return l.rewrite(func(w io.Writer, x *index) error {
		for _, key := range l.index.keys() {
			if _, err := l.read(old, key); err != nil {
				return err
			}
			if _, err := w.Write(l.buf); err != nil {
				return err
			}
			x.add(key, false, int64(len(l.buf)))
		}
		return nil
	})
}

// rewrite replaces the file by what write writes after the first line.
func (l *Log) rewrite(write func(io.Writer, *index) error) error {
	defer l.trim()
	x := newIndex()
	var info fs.FileInfo
	err := durable.Replace(l.path, func(f *os.File) error {
		w := bufio.NewWriterSize(f, 1<<16)
		if _, err := w.WriteString(magic); err != nil {
			return err
		}
		if err := write(w, x); err != nil {
			return err
		}
		if err := w.Flush(); err != nil {
			return err
		}
		var err error
		info, err = f.Stat()
		return err
	})
	if err != nil {
		return err
	}
	l.file, l.index = info, x
	return nil
}
