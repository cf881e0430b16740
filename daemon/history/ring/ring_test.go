package ring

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net/netip"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"strait.io/strait/clustermesh"
	"strait.io/strait/daemon/api"
	"strait.io/strait/daemon/history"
	"strait.io/strait/daemon/plan"
	"strait.io/strait/internal/l4"
)

var noon = time.Date(2026, 5, 1, 12, 0, 0, 0, time.UTC)

// days is a daemon of one cluster whose only service has another number of pods in each turn.
type days struct {
	in   plan.Inputs
	past plan.Past
}

func (d *days) turn(now time.Time, pods int) *history.Turn {
	cart, cluster, node := clustermesh.ServiceName{Namespace: "shop", Name: "cart"}, clustermesh.Origin{Cluster: "a"}, clustermesh.Origin{Cluster: "a", Node: "n1"}
	t := &history.Turn{}
	if d.past == (plan.Past{}) {
		t.Start = "v1"
		d.in = plan.Inputs{Self: plan.Self{Cluster: "a", Node: "n1"}, Config: plan.Config{CIDRs: []netip.Prefix{netip.MustParsePrefix("241.0.0.0/8")}}}
		d.in.State.Records = d.in.State.Records.With(cluster, clustermesh.Record{Origin: cluster, Content: clustermesh.Content{
			Exports:     []clustermesh.Export{{Service: cart, Type: clustermesh.ClusterSetIP, Ports: []clustermesh.ServicePort{{Proto: l4.TCP, Port: 80}}}},
			Allocations: []clustermesh.Allocation{{Service: cart, IP: netip.MustParseAddr("241.1.2.3")}},
		}})
	}
	r := clustermesh.Record{Origin: node, Stamp: clustermesh.Stamp{Epoch: 1, Version: uint64(now.UnixNano())}, Content: clustermesh.Content{Node: &clustermesh.Node{Name: "n1"}}}
	for p := range pods {
		r.Content.Endpoints = append(r.Content.Endpoints, clustermesh.Endpoint{Service: cart, Addr: netip.AddrFrom4([4]byte{10, 1, byte(p >> 8), byte(p)}), Node: "n1",
			Ready: true, Serving: true, Ports: []clustermesh.EndpointPort{{Proto: l4.TCP, Port: 8080}}})
	}
	d.in.Now, d.in.State.Records = now, d.in.State.Records.With(node, r)
	t.Inputs = d.in
	var result plan.Result
	result, d.past = plan.Plan(d.in, d.past)
	t.Result = &result
	return t
}

// opened returns a ring whose Run the test does for it.
func opened(t *testing.T, dir string, most int64) *Ring {
	t.Helper()
	r := New(Config{Dir: dir, MaxBytes: most, Log: slog.New(slog.DiscardHandler)})
	if err := r.open(); err != nil {
		t.Fatal(err)
	}
	return r
}

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

func all(api.HistoryItem) bool { return true }

// podsAt returns how many backends there were, as the plan of that moment says.
func podsAt(t *testing.T, r *Ring, at time.Time) int {
	t.Helper()
	m, err := r.At(at)
	if err != nil {
		t.Fatalf("%s: %v", at, err)
	}
	return len(m.Turn().Result.Desired.Frontends[0].Backends)
}

// TestAt: each moment has its plan, whichever file it is in, in the life of several daemons, and a
// clock that is set back hides what it passes again.
func TestAt(t *testing.T) {
	dir := t.TempDir()
	const turns = 450
	at := func(i int) time.Time { return noon.Add(time.Duration(i) * time.Second) }
	var r *Ring
	var d *days
	for i := range turns {
		if i%150 == 0 {
			r, d = opened(t, dir, MinBytes/4), &days{}
		}
		must(t, r.write(d.turn(at(i), 1+i%60)))
	}
	files, err := r.files()
	if err != nil || len(files) < 2 {
		t.Fatalf("%d files, %v", len(files), err)
	}
	for i := 0; i < turns; i += 37 {
		if got := podsAt(t, r, at(i).Add(time.Millisecond)); got != 1+i%60 {
			t.Errorf("turn %d: %d pods, want %d", i, got, 1+i%60)
		}
	}
	m, err := r.At(at(149))
	if err != nil || !m.Started || !m.Next.Equal(at(150)) {
		t.Errorf("the end of the first life: %+v, %v", m, err)
	}
	var old *api.Unnoted
	if _, err := r.At(noon.Add(-time.Second)); !errors.As(err, &old) || !strings.Contains(old.Try, "2026-05-01T") {
		t.Errorf("before the first turn: %v", err)
	}
	must(t, r.write(d.turn(at(100), 3)))
	if got := podsAt(t, r, at(460)); got != 3 {
		t.Errorf("%d pods after the clock was set back, want 3", got)
	}
	_, items, _, err := r.Items(at(0), time.Time{}, all, 10_000)
	must(t, err)
	for i := 1; i < len(items); i++ {
		if items[i].Seq <= items[i-1].Seq {
			t.Fatalf("item %d follows %d", items[i].Seq, items[i-1].Seq)
		}
	}
	if len(items) != turns+1 {
		t.Errorf("%d items, want %d", len(items), turns+1)
	}
	if _, items, leftOut, err := r.Items(at(10), at(20), all, 4); err != nil || len(items) != 4 || leftOut != 7 || !items[3].Time.Equal(at(20)) {
		t.Errorf("%d items, %d left out, %v", len(items), leftOut, err)
	}
}

// TestBounded: the files take no more than they may, and the newest turns are there.
func TestBounded(t *testing.T) {
	r, d := opened(t, t.TempDir(), MinBytes), &days{}
	for i := range 1500 {
		must(t, r.write(d.turn(noon.Add(time.Duration(i)*time.Second), 1+(i*7919)%230)))
	}
	span, items, _, err := r.Items(noon, time.Time{}, all, 10_000)
	if err != nil || span.Bytes > MinBytes || span.Bytes < MinBytes/2 || !span.Begins.After(noon) {
		t.Errorf("%+v, %v", span, err)
	}
	t.Logf("%d bytes from %s on, %d items", span.Bytes, span.Begins, len(items))
	if got := podsAt(t, r, noon.Add(time.Hour*2)); got != 1+(1499*7919)%230 {
		t.Errorf("%d pods in the end", got)
	}
}

// TestCutAnywhere: a daemon that was killed in the middle of a write leaves what was written
// before, and the next one goes on there.
func TestCutAnywhere(t *testing.T) {
	dir := t.TempDir()
	r, d := opened(t, dir, MinBytes), &days{}
	var sizes []int64
	for i := range 4 {
		must(t, r.write(d.turn(noon.Add(time.Duration(i)*time.Second), i+1)))
		sizes = append(sizes, r.size)
	}
	whole, err := os.ReadFile(r.path)
	must(t, err)
	for size := 0; size <= len(whole); size += 3 {
		dir := filepath.Join(dir, fmt.Sprint(size))
		must(t, os.Mkdir(dir, 0o700))
		must(t, os.WriteFile(filepath.Join(dir, filepath.Base(r.path)), whole[:size], 0o600))
		complete := 0
		for complete < len(sizes) && sizes[complete] <= int64(size) {
			complete++
		}
		cut, d := opened(t, dir, MinBytes), &days{}
		if got := cut.recorder.Seq(); got != uint64(complete) {
			t.Fatalf("cut at %d of %d: turn %d, want %d", size, len(whole), got, complete)
		}
		must(t, cut.write(d.turn(noon.Add(time.Minute), 9)))
		if got := podsAt(t, cut, noon.Add(time.Hour)); got != 9 {
			t.Fatalf("cut at %d: then %d pods", size, got)
		}
		if complete > 0 {
			if got := podsAt(t, cut, noon.Add(30*time.Second)); got != complete {
				t.Fatalf("cut at %d: %d pods, want %d", size, got, complete)
			}
		}
	}
}

// TestDamaged: of a file with a byte that differs, what is before it counts.
func TestDamaged(t *testing.T) {
	dir := t.TempDir()
	r, d := opened(t, dir, MinBytes), &days{}
	for i := range 3 {
		must(t, r.write(d.turn(noon.Add(time.Duration(i)*time.Second), i+1)))
	}
	whole, err := os.ReadFile(r.path)
	must(t, err)
	for i := 0; i < len(whole); i += 11 {
		b := bytes.Clone(whole)
		b[i] ^= 0x40
		must(t, os.WriteFile(r.path, b, 0o600))
		cut := opened(t, dir, MinBytes)
		must(t, cut.write((&days{}).turn(noon.Add(time.Minute), 9)))
		if got := podsAt(t, cut, noon.Add(time.Hour)); got != 9 {
			t.Fatalf("byte %d: then %d pods", i, got)
		}
	}
}

// TestDiskRefuses: while the disk refuses there is a Problem, and turns do not wait. Once it takes files
// again, the history goes on, with all that changed in between.
func TestDiskRefuses(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		dir := filepath.Join(t.TempDir(), "history")
		must(t, os.WriteFile(dir, nil, 0o600)) // a file where the folder should be
		r := New(Config{Dir: dir, MaxBytes: MinBytes, Log: slog.New(slog.DiscardHandler)})
		ctx, cancel := context.WithCancel(t.Context())
		done := make(chan error)
		go func() { done <- r.Run(ctx) }()
		d, pods := &days{}, 0
		note := func(turns int) {
			t.Helper()
			for range turns {
				pods++
				r.Note(d.turn(noon.Add(time.Duration(pods)*time.Second), pods))
			}
			synctest.Wait()
		}
		refused := func(want bool) {
			t.Helper()
			if p := r.Problems(); len(p) > 0 != want || want && (p[0].Code != "STR8107" || !p[0].Warning) {
				t.Fatalf("%+v", p)
			}
		}
		note(3 * queued)
		refused(true)
		must(t, os.Remove(dir))
		time.Sleep(2 * retryEvery)
		refused(false)
		note(1)
		if got := podsAt(t, r, noon.Add(time.Hour)); got != pods {
			t.Errorf("%d pods, want %d", got, pods)
		}
		must(t, os.RemoveAll(dir))
		note(2)
		refused(true)
		time.Sleep(2 * retryEvery)
		refused(false)
		note(1)
		if got := podsAt(t, r, noon.Add(time.Hour)); got != pods {
			t.Errorf("after the folder was removed: %d pods, want %d", got, pods)
		}
		cancel()
		must(t, <-done)
	})
}

// TestMissed: turns that come while the disk is slow are merged into the next one.
func TestMissed(t *testing.T) {
	r, d := New(Config{Dir: t.TempDir(), MaxBytes: MinBytes, Log: slog.New(slog.DiscardHandler)}), &days{}
	for i := range queued + 5 {
		r.Note(d.turn(noon.Add(time.Duration(i)*time.Second), i+1))
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	must(t, r.Run(ctx))
	_, items, _, err := r.Items(noon, time.Time{}, all, 1000)
	must(t, err)
	missed := 0
	for _, i := range items {
		missed += i.Missed
	}
	if len(items) != queued || missed != 5 {
		t.Errorf("%d items, %d turns missed", len(items), missed)
	}
}
