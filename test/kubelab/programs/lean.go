package programs

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"

	"golang.org/x/mod/modfile"
)

// lean says what a program is built without: folders of a module that it needs otherwise. The file
// of a folder takes the place of all that it held.
type lean struct {
	module  string
	folders map[string]string
}

// leaner are the programs that are built so. Traefik proves to certificate authorities that it owns
// a name, with the clients of 180 hosters of DNS: they are a third of the packages that there are
// to compile, and the largest. Of flannel's backends, one needs a module that the module proxy does
// not serve, and one needs cgo.
var leaner = map[string]lean{
	"traefik": {"github.com/go-acme/lego/v4", map[string]string{"providers/dns": `package dns

import (
	"fmt"

	"github.com/go-acme/lego/v4/challenge"
)

func NewDNSChallengeProviderByName(name string) (challenge.Provider, error) {
	return nil, fmt.Errorf("built without DNS provider %q", name)
}
`}},
	"flannel": {"github.com/flannel-io/flannel", map[string]string{
		"pkg/backend/tencentvpc": "package tencentvpc\n",
		"pkg/backend/udp":        "package udp\n",
	}},
}

// modfile writes a copy of the module without the folders, and of a program's go.mod that leads to
// it. It returns the path of the latter, in a folder that the caller removes.
func (l lean) modfile(ctx context.Context, dir string) (file string, err error) {
	to, err := os.MkdirTemp("", "strait-lean-")
	if err != nil {
		return "", err
	}
	defer func() {
		if err != nil {
			err = errors.Join(fmt.Errorf("leave folders of %s out: %w", l.module, err), os.RemoveAll(to))
		}
	}()
	from, err := moduleDir(ctx, dir, l.module)
	if err != nil {
		return "", err
	}
	if err := l.copy(from, filepath.Join(to, "module")); err != nil {
		return "", err
	}
	for _, name := range []string{"go.mod", "go.sum"} {
		b, err := os.ReadFile(filepath.Join(dir, name))
		if err != nil {
			return "", err
		}
		if name == "go.mod" {
			mod, err := modfile.Parse(name, b, nil)
			if err != nil {
				return "", err
			}
			if err := mod.AddReplace(l.module, "", filepath.Join(to, "module"), ""); err != nil {
				return "", err
			}
			if b, err = mod.Format(); err != nil {
				return "", err
			}
		}
		if err := os.WriteFile(filepath.Join(to, name), b, 0o644); err != nil {
			return "", err
		}
	}
	return filepath.Join(to, "go.mod"), nil
}

// copy copies the module's files except those below the folders, and writes the files in their place.
func (l lean) copy(from, to string) error {
	source := os.DirFS(from)
	err := fs.WalkDir(source, ".", func(path string, d fs.DirEntry, err error) error {
		_, left := l.folders[path]
		switch {
		case err != nil:
			return err
		case left:
			return fs.SkipDir
		case d.IsDir():
			return os.MkdirAll(filepath.Join(to, path), 0o755)
		}
		b, err := fs.ReadFile(source, path)
		if err != nil {
			return err
		}
		return os.WriteFile(filepath.Join(to, path), b, 0o644)
	})
	if err != nil {
		return err
	}
	for folder, file := range l.folders {
		if err := os.MkdirAll(filepath.Join(to, folder), 0o755); err != nil {
			return err
		}
		if err := os.WriteFile(filepath.Join(to, folder, "lean.go"), []byte(file), 0o644); err != nil {
			return err
		}
	}
	return nil
}
