package lend

import (
	"os"
	"path/filepath"
	"testing"
	"time"
)

// FuzzLook: whatever a lender's directory holds, at most the text in it is lent, and a token has one line.
func FuzzLook(f *testing.F) {
	dir := f.TempDir()
	f.Add("one", []byte("token\n"), []byte("root\n"), true)
	f.Add("..", []byte(""), []byte("\x00"), true)
	f.Add("two", []byte("a\nb"), []byte("\n"), false)
	f.Fuzz(func(t *testing.T, name string, token, root []byte, alive bool) {
		if name == "" || name != filepath.Base(name) || name == "." || name == ".." || len(name) > 100 {
			name = "odd"
		}
		own := filepath.Join(dir, name)
		if os.Mkdir(own, 0o700) != nil {
			return // a name that no directory can have
		}
		defer os.RemoveAll(own)
		files := map[string][]byte{tokenFile: token, rootFile: root}
		if alive {
			files[aliveFile] = nil
		}
		for file, b := range files {
			if err := os.WriteFile(filepath.Join(own, file), b, 0o600); err != nil {
				t.Fatal(err)
			}
		}
		l, err := Look(dir, time.Now())
		if err != nil || l == (Loan{}) {
			return
		}
		if !alive || l.From != name || len(l.Token) > len(token) || len(l.Root) > len(root) || l.String() != "loan of "+name {
			t.Fatalf("lent %q %q by %s", l.Token, l.Root, l.From)
		}
	})
}
