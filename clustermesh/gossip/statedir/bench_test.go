package statedir

import (
	"bytes"
	"context"
	"os"
	"path/filepath"
	"testing"

	"strait.io/strait/clustermesh"
	"strait.io/strait/clustermesh/replica"
)

// many are records of 10,000 nodes with ten pods each.
func many(b *testing.B) []replica.Entry {
	var all []replica.Entry
	for i := range 10_000 {
		rec := clustermesh.Record{Origin: origin(i), Stamp: clustermesh.Stamp{Epoch: 1, Version: 1}}
		rec.Content.Node = &clustermesh.Node{Name: rec.Origin.Node}
		rec.UID = string(bytes.Repeat([]byte("x"), 1100))
		e, err := replica.NewEntry(rec)
		must(b, err)
		all = append(all, e.Sealed(bytes.Repeat([]byte{1}, 305)))
	}
	return all
}

// BenchmarkSaveOne saves one changed record of 10,000, with its share of the compactions.
func BenchmarkSaveOne(b *testing.B) {
	dir := b.TempDir()
	r, _, _ := OpenRecords(dir)
	all := many(b)
	must(b, r.Replace(ended(b), all))
	i := 0
	for b.Loop() {
		e := entry(b, origin(i%len(all)), uint64(i))
		must(b, r.Save(b.Context(), []clustermesh.Origin{origin(i % len(all))}, map[clustermesh.Origin]replica.Entry{e.Record.Origin: e}))
		i++
	}
}

// BenchmarkCompact copies 10,000 records.
func BenchmarkCompact(b *testing.B) {
	r, _, _ := OpenRecords(b.TempDir())
	must(b, r.Replace(ended(b), many(b)))
	for b.Loop() {
		must(b, r.log.Compact())
	}
}

// BenchmarkReplace writes 10,000 records from memory, at full speed.
func BenchmarkReplace(b *testing.B) {
	r, _, _ := OpenRecords(b.TempDir())
	all := many(b)
	ctx := ended(b)
	for b.Loop() {
		must(b, r.Replace(ctx, all))
	}
}

// BenchmarkOpen reads 10,000 records.
func BenchmarkOpen(b *testing.B) {
	dir := b.TempDir()
	r, _, _ := OpenRecords(dir)
	must(b, r.Replace(ended(b), many(b)))
	info, err := os.Stat(filepath.Join(dir, recordsFile))
	must(b, err)
	b.SetBytes(info.Size())
	for b.Loop() {
		if _, all, err := OpenRecords(dir); err != nil || len(all) != 10_000 {
			b.Fatalf("%d records: %v", len(all), err)
		}
	}
}

// ended is a context that has ended, so that nothing is written slowly.
func ended(b *testing.B) context.Context {
	ctx, cancel := context.WithCancel(b.Context())
	cancel()
	return ctx
}
