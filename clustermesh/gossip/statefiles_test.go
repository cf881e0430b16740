package gossip

import (
	"os"
	"path/filepath"
	"testing"

	"strait.io/strait/clustermesh"
	"strait.io/strait/clustermesh/authority"
	"strait.io/strait/clustermesh/gossip/statedir"
	"strait.io/strait/clustermesh/trust"
)

// FuzzStateFiles: what an earlier life, a disk or an operator left in the state directory is read, or
// refused, and an unsigned statement is ignored.
func FuzzStateFiles(f *testing.F) {
	dir := f.TempDir()
	f.Add([]byte(`{"east": "uid-1"}`), []byte(`{"east": 3}`), []byte("statement"))
	f.Add([]byte(`{"": null}`), []byte(`{"east": -1}`), []byte{0x82, 0x40, 0x40})
	f.Add([]byte(`[`), []byte(``), []byte{})
	f.Fuzz(func(t *testing.T, clusters, distances, statement []byte) {
		for name, b := range map[string][]byte{uidsFile: clusters, distancesFile: distances, statementFile: statement, stateFile: clusters} {
			if err := os.WriteFile(filepath.Join(dir, name), b, 0o600); err != nil {
				t.Fatal(err)
			}
		}
		if all, err := statedir.LoadUIDs(dir); err == nil {
			if err := statedir.SaveUIDs(dir, all); err != nil {
				t.Fatalf("what was read cannot be written: %v", err)
			}
		}
		if err := statedir.SaveDistances(dir, statedir.LoadDistances(dir)); err != nil {
			t.Fatalf("what was read cannot be written: %v", err)
		}
		if _, err := loadState(dir); err == nil {
			t.Fatal("state without a checksum was read")
		}
		g := trust.New(&Authority{Pins: authority.Pins{"east": {Cluster: "east", Roots: []authority.PublicKey{{1}}}}}, clustermesh.Origin{Cluster: "east", Node: "n1"})
		g.Restore(statement)
		if g.Current().Bytes != nil {
			t.Fatalf("restored the unsigned statement %+v", g.Current().Statement)
		}
	})
}
