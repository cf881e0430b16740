package arch

import (
	"strings"
	"testing"
	"testing/fstest"
)

// TestPortsFound puts one file at a time into an empty tree: a check that finds nothing anywhere would
// pass on any tree.
func TestPortsFound(t *testing.T) {
	allowed := []AllowedPort{{"a/allowed", []int{41820}, "for this test"}}
	user := &fstest.MapFile{Data: []byte("package a\nconst port = 41820\n")}
	for _, c := range []struct{ name, file, text, want string }{
		{"nothing", "a/a_test.go", "package a\nconst port = 20040\n", ""},
		{"a number", "a/a_test.go", "package a\nconst port = 40000\n", "a/a_test.go:2: [ephemeral port] 40000"},
		{"one with an underscore", "a/a_test.go", "package a\nconst port = 40_000\n", "40000"},
		{"an address", "a/a_test.go", "package a\n\nvar a = listen(\"127.0.0.1:50051\")\n", "a/a_test.go:3: [ephemeral port] 50051"},
		{"an argument in a script", "a/a_test.go", "package a\nvar a = `\nserve\nserve -p 50051`\n", "a/a_test.go:4: [ephemeral port] 50051"},
		{"the second of two", "a/a_test.go", "package a\nvar a = \"5201,50051\"\n", "50051"},
		{"the range's ends", "a/a_test.go", "package a\nvar a = []int{32768, 60999}\n", "32768|60999"},
		{"beside the range", "a/a_test.go", "package a\nvar a = []int{32767, 61000, 0x9c40, 040000}\n", ""},
		{"a comment", "a/a_test.go", "package a\n\n// 40000 is a bad port.\n", ""},
		{"a part of a number or a word", "a/a_test.go", "package a\nvar a = []string{\"140000\", \"400001\", \"1.40000\", \"x40000\"}\n", ""},
		{"a program in C", "test/clients/testdata/tcp.c", "int main(void)\n{\n\treturn htons(40000);\n}\n", "tcp.c:3: [ephemeral port] 40000"},
		{"YAML", "install/testdata/config.yaml", "port: 40000", "config.yaml:1: [ephemeral port] 40000"},
		{"a shell script", "tools/run.sh", "iperf3 -s -p 45201\n", "run.sh:1: [ephemeral port] 45201"},
		{"a program of tests", "test/bench/bench.go", "package main\nconst port = 40000\n", "bench.go:2"},
		{"Go that does not parse", "a/testdata/a.go", "port 40000\n", "a.go:1"},
		{"what is no test", "a/a.go", "package a\nconst port = 40000\n", ""},
		{"an allowed number", "a/allowed/b_test.go", "package a\nconst port = 41820\n", ""},
		{"another number of an allowed file", "a/allowed/b_test.go", "package a\nconst port = 41821\n", "41821"},
		{"an allowed number elsewhere", "a/allowed_test.go", "package a\nconst port = 41820\n", "41820"},
	} {
		got, err := checkPorts(fstest.MapFS{"a/allowed/a_test.go": user, c.file: {Data: []byte(c.text)}}, allowed)
		want := strings.FieldsFunc(c.want, func(r rune) bool { return r == '|' })
		if err != nil || len(got) != len(want) {
			t.Errorf("%s: got %q, %v; want %q", c.name, got, err, want)
			continue
		}
		for i, w := range want {
			if !strings.Contains(got[i].String(), w) {
				t.Errorf("%s: got %q, want %q", c.name, got[i], w)
			}
		}
	}
	if got, err := checkPorts(fstest.MapFS{}, allowed); err != nil || len(got) != 1 || !strings.Contains(got[0].Message, "not needed") {
		t.Errorf("a row that nothing needs: got %q, %v", got, err)
	}
}
