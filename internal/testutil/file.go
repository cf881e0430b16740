package testutil

import (
	"errors"
	"os"
	"path/filepath"
)

// Replace gives a file another text as a careful operator does: whoever reads it finds the old one or the new
// one. It makes the directory. The file beside it has a name that readers of directories pass over.
func Replace(path, text string) error {
	dir := filepath.Dir(path)
	tmp := filepath.Join(dir, "."+filepath.Base(path)+".new")
	return errors.Join(os.MkdirAll(dir, 0o755), os.WriteFile(tmp, []byte(text), 0o600), os.Rename(tmp, path))
}
