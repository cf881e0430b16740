package statedir

import (
	"bytes"
	"errors"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"testing"

	"strait.io/strait/clustermesh"
	"strait.io/strait/clustermesh/gossip/statelog"
	"strait.io/strait/clustermesh/replica"
)

func must(t testing.TB, err error) {
	if err != nil {
		t.Helper()
		t.Fatal(err)
	}
}

func origin(i int) clustermesh.Origin {
	return clustermesh.Origin{Cluster: "a", Node: clustermesh.NodeName(fmt.Sprintf("n%05d", i))}
}

// entry is a record of about 1.3 KB, as a node with ten pods has.
func entry(t testing.TB, o clustermesh.Origin, version uint64) replica.Entry {
	t.Helper()
	e, err := replica.NewEntry(clustermesh.Record{Origin: o, Stamp: clustermesh.Stamp{Epoch: 1, Version: version}})
	must(t, err)
	return e.Sealed(bytes.Repeat([]byte{1}, 305))
}

func opened(t testing.TB, dir string) (*Records, map[clustermesh.Origin]replica.Version) {
	t.Helper()
	r, entries, err := OpenRecords(dir)
	must(t, err)
	return r, versions(entries)
}

func versions(entries []replica.Entry) map[clustermesh.Origin]replica.Version {
	out := map[clustermesh.Origin]replica.Version{}
	for _, e := range entries {
		out[e.Record.Origin] = e.Version()
	}
	return out
}

func TestDiffering(t *testing.T) {
	has := map[clustermesh.Origin]replica.Version{origin(1): entry(t, origin(1), 1).Version(), origin(2): entry(t, origin(2), 1).Version(), origin(3): {}}
	held := map[clustermesh.Origin]replica.Entry{origin(1): entry(t, origin(1), 1), origin(2): entry(t, origin(2), 2), origin(4): entry(t, origin(4), 1)}
	set, remove := differing(has, []clustermesh.Origin{origin(1), origin(2), origin(3), origin(4), origin(5)}, held)
	if !maps.Equal(versions(set), map[clustermesh.Origin]replica.Version{origin(2): held[origin(2)].Version(), origin(4): held[origin(4)].Version()}) {
		t.Errorf("sets %v", versions(set))
	}
	if !slices.Equal(remove, []clustermesh.Origin{origin(3)}) {
		t.Errorf("removes %v", remove)
	}
}

// TestSave: what is saved is read, with its seal and without bytes that can be made again, and what is not
// named stays.
func TestSave(t *testing.T) {
	dir := t.TempDir()
	r, none := opened(t, dir)
	if !r.Whole() || len(none) > 0 {
		t.Fatalf("without a file: %v", none)
	}
	must(t, r.Replace(t.Context(), []replica.Entry{entry(t, origin(1), 1), entry(t, origin(2), 1), entry(t, origin(3), 1)}))
	held := map[clustermesh.Origin]replica.Entry{origin(2): entry(t, origin(2), 2), origin(4): entry(t, origin(4), 1)}
	must(t, r.Save(t.Context(), []clustermesh.Origin{origin(2), origin(3), origin(4)}, held))
	if r.Whole() {
		t.Error("the file must be written again")
	}
	_, entries, err := OpenRecords(dir)
	must(t, err)
	want := map[clustermesh.Origin]replica.Version{origin(1): entry(t, origin(1), 1).Version(), origin(2): held[origin(2)].Version(), origin(4): held[origin(4)].Version()}
	if got := versions(entries); !maps.Equal(got, want) {
		t.Errorf("read %v, want %v", got, want)
	}
	for _, e := range entries {
		if !reflect.DeepEqual(e, e.Held()) || len(e.Seal()) != 305 {
			t.Errorf("%s has other bytes than in memory, or no seal", e.Record.Origin)
		}
	}
	before, err := os.Stat(filepath.Join(dir, recordsFile))
	must(t, err)
	must(t, r.Save(t.Context(), []clustermesh.Origin{origin(2)}, held))
	if after, err := os.Stat(filepath.Join(dir, recordsFile)); err != nil || after.Size() != before.Size() {
		t.Error("what is saved already was written again")
	}
}

// TestSaveCompacts: a file to which the same record is written again and again stays small.
func TestSaveCompacts(t *testing.T) {
	dir := t.TempDir()
	r, _ := opened(t, dir)
	must(t, r.Replace(t.Context(), nil))
	large := map[clustermesh.Origin]replica.Entry{}
	for i := range 60 {
		large[origin(1)] = entry(t, origin(1), uint64(i)).Sealed(make([]byte, 100<<10))
		must(t, r.Save(t.Context(), []clustermesh.Origin{origin(1)}, large))
	}
	info, err := os.Stat(filepath.Join(dir, recordsFile))
	must(t, err)
	if info.Size() > 2<<20 {
		t.Errorf("the file has %d bytes", info.Size())
	}
	if _, got := opened(t, dir); got[origin(1)] != large[origin(1)].Version() {
		t.Errorf("read %v", got)
	}
}

// TestUnreadableValue: a value that this build cannot read is left out, and dropped when its origin is saved.
func TestUnreadableValue(t *testing.T) {
	dir := t.TempDir()
	l, _ := statelog.Open(filepath.Join(dir, recordsFile))
	good, err := replica.Encode(&replica.Snapshot{Entries: []replica.Entry{entry(t, origin(1), 1)}})
	must(t, err)
	must(t, l.Replace(func(yield func(statelog.Op, error) bool) {
		for i, value := range [][]byte{good, good, []byte("garbage"), {}} { // the second is another origin's
			yield(statelog.Op{Key: keyOf(origin(i + 1)), Value: value}, nil)
		}
	}))
	r, entries, err := OpenRecords(dir)
	if err != nil || len(entries) != 1 || entries[0].Record.Origin != origin(1) {
		t.Fatalf("read %v: %v", versions(entries), err)
	}
	must(t, r.Save(t.Context(), r.Origins(), map[clustermesh.Origin]replica.Entry{origin(1): entries[0]}))
	if again, _ := opened(t, dir); len(again.Origins()) != 1 {
		t.Errorf("the file has %v", again.Origins())
	}
}

// TestTorn: of a file that ends early, what comes before is read, and the error says what is lost.
func TestTorn(t *testing.T) {
	dir := t.TempDir()
	r, _ := opened(t, dir)
	must(t, r.Replace(t.Context(), []replica.Entry{entry(t, origin(1), 1), entry(t, origin(2), 1)}))
	path := filepath.Join(dir, recordsFile)
	b, err := os.ReadFile(path)
	must(t, err)
	must(t, os.WriteFile(path, b[:len(b)-1], 0o600))
	r, entries, err := OpenRecords(dir)
	if d, ok := errors.AsType[*statelog.Damage](err); !ok || d.Keys != 1 || d.Lost == 0 || len(entries) != 1 {
		t.Fatalf("read %v: %v", versions(entries), err)
	}
	must(t, r.Save(t.Context(), nil, nil))
	if _, got := opened(t, dir); len(got) != 1 {
		t.Errorf("read %v", got)
	}
}
