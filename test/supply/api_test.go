package supply

import (
	"bytes"
	"io/fs"
	"os"
	"path/filepath"
	"testing"

	"strait.io/strait/internal/testutil"
)

// TestAPI: the deep copies, the CRD and the client of package api are what their generators make of
// the types.
func TestAPI(t *testing.T) {
	if out, err := try(t, top, "GOFLAGS= go build -C api/generate -o /dev/null tool"); err != nil {
		testutil.Missing(t, "cannot build the generators, whose source comes from Go's module proxy: "+out)
	}
	dir := filepath.Join(t.TempDir(), "source")
	copySource(t, dir)
	files := func(top string) map[string][]byte {
		out := map[string][]byte{}
		err := filepath.WalkDir(filepath.Join(top, "api"), func(path string, d fs.DirEntry, err error) error {
			if err == nil && d.Type().IsRegular() {
				name, _ := filepath.Rel(top, path)
				out[name] = read(t, path)
			}
			return err
		})
		if err != nil {
			t.Fatal(err)
		}
		return out
	}
	committed := files(dir)
	for _, stale := range []string{"api/v1alpha1/zz_generated.deepcopy.go", "api/client/clientset.go"} { // they must come back
		if committed[stale] == nil {
			t.Fatalf("there is no %s", stale)
		}
		if err := os.Remove(filepath.Join(dir, stale)); err != nil {
			t.Fatal(err)
		}
	}
	run(t, dir, "api/generate.sh")
	made := files(dir)
	for name := range committed {
		if !bytes.Equal(committed[name], made[name]) {
			t.Errorf("%s is not what the types make: run go generate ./api/v1alpha1, and go test ./install/chart -update", name)
		}
	}
	for name := range made {
		if committed[name] == nil {
			t.Errorf("%s is generated, and not committed", name)
		}
	}
}
