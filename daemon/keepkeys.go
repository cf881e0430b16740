package daemon

import (
	"errors"
	"io/fs"
	"os"

	"strait.io/strait/clustermesh"
	"strait.io/strait/internal/keyfile"
	"strait.io/strait/internal/problem"
)

// keepKeys writes the private keys that are in force where another program removed their files.
// Otherwise the next start, or the next tunnel device, would make new ones that no peer knows.
func (d *Daemon) keepKeys() (problems []clustermesh.Problem) {
	keys := map[string]string{}
	if d.config.Authority.on() {
		keys[nodeKeyFile(d.config)] = d.keys.node.Base64()
	}
	if d.kernel.mesh != nil {
		keys[d.kernel.keyFile()] = d.kernel.private.Base64()
	}
	for path, text := range keys {
		if _, err := os.Lstat(path); !errors.Is(err, fs.ErrNotExist) {
			continue // what is there may be on purpose: the next start judges it
		}
		err := keyfile.Create(path, text)
		if err == nil {
			d.log.Warn("another program removed the file of a key that is in force: written again", "file", path)
			continue
		}
		problems = append(problems, clustermesh.Problem{
			Code: problem.StateFile, Object: "private key", File: path, Warning: true,
			Message: "its file is gone and cannot be written again: the next start makes a new key; " + err.Error(),
			Try:     "make stateDir writable; straitd writes the file then",
		})
	}
	return problems
}
