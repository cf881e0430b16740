package script

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// Every YAML example of these pages is in a script that executes it.
func TestPagesAreExecuted(t *testing.T) {
	var scripts strings.Builder
	files, err := filepath.Glob("testdata/*.txtar")
	if err != nil || len(files) == 0 {
		t.Fatal(files, err)
	}
	for _, f := range files {
		text, err := os.ReadFile(f)
		if err != nil {
			t.Fatal(err)
		}
		scripts.Write(text)
	}
	for _, page := range []string{"locality.md", "drain.md"} {
		text, err := os.ReadFile(filepath.Join("../../docs", page))
		if err != nil {
			t.Fatal(err)
		}
		blocks := strings.Split(string(text), "```yaml\n")
		if len(blocks) < 2 {
			t.Errorf("%s has no YAML", page)
		}
		for _, b := range blocks[1:] {
			example, _, _ := strings.Cut(b, "```")
			if !strings.Contains(scripts.String(), example) {
				t.Errorf("%s: no script executes\n%s", page, example)
			}
		}
	}
}
