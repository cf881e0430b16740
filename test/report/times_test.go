package main

import (
	"bytes"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// TestTimes: a test's time is its own, a subtest's is the subtest's, and one that runs in parallel is no part of its
// parent's.
func TestTimes(t *testing.T) {
	const head = `{"Package":"strait.io/strait/datapath","Action":`
	events := strings.Join([]string{
		head + `"run","Test":"TestA"}`,
		head + `"pass","Test":"TestA/one/deep","Elapsed":1.5}`,
		head + `"pass","Test":"TestA/one","Elapsed":2}`,
		head + `"fail","Test":"TestA/two","Elapsed":3}`,
		head + `"pause","Test":"TestA/beside"}`,
		head + `"cont","Test":"TestA/beside"}`,
		head + `"pass","Test":"TestA/beside","Elapsed":40}`,
		head + `"pass","Test":"TestA","Elapsed":6.25}`,
		head + `"pass","Test":"TestB/one","Elapsed":0.01}`,
		head + `"pass","Test":"TestB","Elapsed":0}`,
		head + `"skip","Test":"TestC","Elapsed":0}`,
		head + `"pass","Elapsed":99}`,
	}, "\n")
	r := newReport(io.Discard)
	if err := r.read(strings.NewReader(events)); err != nil {
		t.Fatal(err)
	}
	file := filepath.Join(t.TempDir(), "times")
	for range 2 { // as two steps do
		if err := r.clock.appendTo(file); err != nil {
			t.Fatal(err)
		}
	}
	got, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	const want = `1.50 datapath/TestA/one/deep
0.50 datapath/TestA/one
3.00 datapath/TestA/two
40.00 datapath/TestA/beside
1.25 datapath/TestA
0.01 datapath/TestB/one
0.00 datapath/TestB
0.00 datapath/TestC
`
	if string(got) != want+want {
		t.Errorf("got\n%swant twice\n%s", got, want)
	}
}

func TestSlowest(t *testing.T) {
	var out bytes.Buffer
	if err := printSlowest(&out, strings.NewReader("9.5 a/TestA\n10.00 b/TestB/x_y\n0.01 c/TestC\n120 d/TestD\n"), 3); err != nil {
		t.Fatal(err)
	}
	want := "    120.0 s  d/TestD\n     10.0 s  b/TestB/x_y\n      9.5 s  a/TestA\n"
	if out.String() != want {
		t.Errorf("got\n%swant\n%s", &out, want)
	}
	if err := printSlowest(io.Discard, strings.NewReader(""), 3); err != nil {
		t.Errorf("no test at all: %v", err)
	}
	if err := printSlowest(io.Discard, strings.NewReader("--- FAIL\n"), 3); err == nil {
		t.Error("a line that says no time is no error")
	}
}
