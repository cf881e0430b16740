package e2e

import (
	"encoding/json"
	"errors"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"strait.io/strait/internal/testutil"
	"strait.io/strait/test/pages"
)

// TestDemoKept looks at a demo that was left up as its user would, with strait and without it.
func TestDemoKept(t *testing.T) {
	testutil.NeedRoot(t)
	testutil.NeedTun(t)
	bin := binaries(t)
	wantNoTraces(t, bin)
	// Runs before the traces are looked for, whatever fails in between; a demo that is down already is fine.
	t.Cleanup(func() {
		if err := demo(t, bin, "down").Run(); err != nil {
			t.Errorf("strait demo down: %v", err)
		}
	})
	if err := demo(t, bin, "up", "--clusters", "2", "--nodes", "2").Run(); err != nil {
		t.Errorf("strait demo up: %v", err) // what it left up is still worth a look
	}
	t.Run("explain", func(t *testing.T) { explains(t, bin) })
	t.Run("trace", func(t *testing.T) { tracesRecords(t, bin) })
	t.Run("maps", func(t *testing.T) { mapsReadable(t, bin) })
	t.Run("pages", func(t *testing.T) { pagesHold(t, bin) })
}

// pagesHold executes what the pages show of a demo, in a pod of its first node, and wants the tables that they show.
func pagesHold(t *testing.T, bin string) {
	all, err := pages.Load(os.DirFS(filepath.Dir(bin)))
	if err != nil {
		t.Fatal(err)
	}
	const node = "us-east-1"
	socket := filepath.Join(demoFolder(bin), node, "run", "strait.sock")
	pins := filepath.Join(demoFolder(bin), "bpf", node)
	blocks := pages.Of(all, pages.Demo)
	if len(blocks) == 0 {
		t.Fatal("no page shows a demo")
	}
	for _, b := range blocks {
		script := strings.ReplaceAll(b.Script(), "/sys/fs/bpf/strait", pins)
		cmd := exec.Command(filepath.Join(bin, "strait"), "demo", "exec", node+"/client", "--", "bash", "-e", "-u", "-o", "pipefail", "-c", script)
		cmd.Dir = filepath.Dir(bin)
		cmd.Env = append(os.Environ(), "PATH="+bin+":"+os.Getenv("PATH"), "STRAIT_SOCKET="+socket, "STRAIT_PINS="+pins)
		out, err := cmd.CombinedOutput()
		if err != nil {
			t.Errorf("%s: %v\n%s\n%s", b.Place(), err, script, out)
			continue
		}
		var rows [][]string
		for line := range strings.Lines(string(out)) {
			rows = append(rows, strings.Fields(line))
		}
		for _, want := range b.Headers() {
			if !slices.ContainsFunc(rows, func(row []string) bool { return slices.Equal(row, want) }) {
				t.Errorf("%s: the page shows the columns %q; the output is\n%s", b.Place(), want, out)
			}
		}
	}
}

// explains asks the daemon of a node why traffic goes where it goes.
func explains(t *testing.T, bin string) {
	sockets := find(t, bin, "strait.sock")
	if len(sockets) != 4 {
		t.Fatalf("API sockets %q, want one of each of 4 nodes", sockets)
	}
	for _, s := range sockets {
		out, err := exec.Command(filepath.Join(bin, "strait"), "--socket", s, "explain", "default/serve", "-o", "json").CombinedOutput()
		if err != nil {
			t.Fatalf("strait explain: %v\n%s", err, out)
		}
		var answer struct {
			Service struct {
				Frontends []struct {
					Endpoints []struct{ Tier, Reason string }
				}
			}
		}
		if err := json.Unmarshal(out, &answer); err != nil {
			t.Fatalf("%v in:\n%s", err, out)
		}
		if len(answer.Service.Frontends) == 0 {
			t.Fatalf("explains no frontend:\n%s", out)
		}
		for _, f := range answer.Service.Frontends {
			for _, e := range f.Endpoints {
				if e.Tier == "" || e.Reason == "" {
					t.Errorf("an endpoint without tier or reason: %+v", e)
				}
			}
			if len(f.Endpoints) < 2 {
				t.Errorf("a frontend with %d endpoints, want those of 2 clusters", len(f.Endpoints))
			}
		}
	}
}

// tracesRecords follows the records of a service: those of its own cluster to their writers, as far as
// daemons of that cluster passed them on, and those of the other one until they leave this one.
func tracesRecords(t *testing.T, bin string) {
	for _, s := range find(t, bin, "strait.sock") {
		out, err := exec.Command(filepath.Join(bin, "strait"), "--socket", s, "trace", "default/serve", "-o", "json").Output()
		// It is 3 where the other cluster is not asked.
		if exit := (*exec.ExitError)(nil); err != nil && (!errors.As(err, &exit) || exit.ExitCode() != 3) {
			t.Fatalf("strait trace: %v\n%s", err, out)
		}
		var answer struct {
			SeenFrom struct{ Cluster, Node string }
			Items    []struct {
				Origin, Outcome string
				Hops            []struct {
					Node, Stamp      string
					Written, Unasked bool
				}
			}
		}
		if err := json.Unmarshal(out, &answer); err != nil {
			t.Fatalf("%v in:\n%s", err, out)
		}
		if len(answer.Items) != 6 { // two clusters of two nodes
			t.Errorf("%d records, want 6:\n%s", len(answer.Items), out)
		}
		for _, x := range answer.Items {
			cluster, _, _ := strings.Cut(x.Origin, "/")
			last := x.Hops[len(x.Hops)-1]
			if own := cluster == answer.SeenFrom.Cluster; own && !last.Written || !own && !last.Unasked || x.Hops[0].Stamp == "" || x.Outcome == "hangs" {
				t.Errorf("from %s/%s, the record of %s: %+v", answer.SeenFrom.Cluster, answer.SeenFrom.Node, x.Origin, x)
			}
		}
	}
}

// mapsReadable dumps pinned maps with bpftool: named fields, thanks to the BTF in the object.
func mapsReadable(t *testing.T, bin string) {
	bpftool, err := exec.LookPath("bpftool")
	if err != nil {
		testutil.Missing(t, "needs bpftool: run `make setup` as root")
	}
	for pin, fields := range map[string][]string{
		"services": {"addr", "port", "proto", "index"},
		"backends": {"addr", "port", "threshold", "alias"},
	} {
		pins := find(t, bin, pin)
		if len(pins) == 0 {
			t.Errorf("no pinned map is called %s", pin)
			continue
		}
		out, err := exec.Command(bpftool, "map", "dump", "pinned", pins[0]).CombinedOutput()
		if err != nil {
			t.Errorf("bpftool map dump pinned %s: %v\n%s", pins[0], err, out)
		}
		for _, f := range fields {
			if !strings.Contains(string(out), `"`+f+`":`) {
				t.Errorf("map %s: no field %q in:\n%.1000s", pin, f, out)
			}
		}
	}
}

// find lists the files of a name below the demo's folder.
func find(t *testing.T, bin, name string) (out []string) {
	t.Helper()
	err := filepath.WalkDir(demoFolder(bin), func(path string, d fs.DirEntry, err error) error {
		if err != nil && !os.IsNotExist(err) {
			return err
		}
		if d != nil && !d.IsDir() && d.Name() == name {
			out = append(out, path)
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	return out
}
