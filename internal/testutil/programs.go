package testutil

import (
	"fmt"
	"os"
	"os/exec"
	"sync"
)

// Programs returns a function that builds straitd and strait once, and returns their directory. The
// directory's name says which suite it is of. It is removed at an interrupt; otherwise the suite removes
// it. The flags are those of make build, so that what that compiled is not compiled again.
func Programs(suite string) func() (string, error) {
	return sync.OnceValues(func() (string, error) {
		dir, err := os.MkdirTemp("", "strait-t-"+suite+"-")
		if err != nil {
			return "", err
		}
		AtInterrupt(func() { os.RemoveAll(dir) })
		cmd := exec.Command("go", "build", "-buildvcs=false", "-trimpath", "-ldflags", "-s -w", "-o", dir, "strait.io/strait/cmd/straitd", "strait.io/strait/cmd/strait")
		cmd.Env = append(os.Environ(), "CGO_ENABLED=0")
		out, err := cmd.CombinedOutput()
		if err != nil {
			err = fmt.Errorf("%w: %s", err, out)
		}
		return dir, err
	})
}
