package supply

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// TestFuzz: the script behind make fuzz-check wants each target to work, in a module of its own. `go test`
// alone sees nothing wrong with any of these.
func TestFuzz(t *testing.T) {
	const good = "func FuzzGood(f *testing.F) { f.Add(1); f.Fuzz(func(t *testing.T, n int) {}) }\n"
	for _, c := range []struct {
		name, target, says string
		ok                 bool
	}{
		{"works", good, "ok    ./a FuzzGood: 200 inputs", true},
		{"none", "", "no fuzz target found", false},
		// Each process of the engine makes another seed.
		{"a seed that fails in the engine", good + `func FuzzBad(f *testing.F) {
			want := os.Getpid(); f.Add(want)
			f.Fuzz(func(t *testing.T, n int) { if n != want { t.Error("another seed") } }) }`, "FAILED ./a FuzzBad", false},
		{"a target that skips", "func FuzzBad(f *testing.F) { f.Skip(\"not here\") }\n", "FAILED ./a FuzzBad, after 0 inputs", false},
		{"a target that looks at nothing", "func FuzzBad(f *testing.F) {}\n", "FAILED ./a FuzzBad, after 0 inputs", false},
		{"a package that does not compile", good + "var x int = \"\"\n", "cannot use", false},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			dir := t.TempDir()
			script, err := os.ReadFile(filepath.Join(top, "test/setup/fuzz.sh"))
			if err != nil {
				t.Fatal(err)
			}
			for name, text := range map[string]string{
				"test/setup/fuzz.sh": string(script),
				"go.mod":             "module fuzzed\n\ngo 1.26\n",
				"a/a_test.go":        "package a\nimport (\n\"os\"\n\"testing\"\n)\nvar _ = os.Getpid\n" + strings.TrimLeft(c.target, "\n"),
			} {
				file := filepath.Join(dir, name)
				if err := os.MkdirAll(filepath.Dir(file), 0o755); err != nil {
					t.Fatal(err)
				}
				if err := os.WriteFile(file, []byte(text), 0o755); err != nil {
					t.Fatal(err)
				}
			}
			out, err := try(t, dir, "test/setup/fuzz.sh 200x")
			if (err == nil) != c.ok || !strings.Contains(out, c.says) {
				t.Errorf("%v, want %q\n%s", err, c.says, out)
			}
		})
	}
}
