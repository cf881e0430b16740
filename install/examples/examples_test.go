package examples

import (
	"flag"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"testing"

	"strait.io/strait/clustermesh"
	"strait.io/strait/clustermesh/manifest"
)

var update = flag.Bool("update", false, "rewrite the committed files")

func TestCommittedFilesAreRendered(t *testing.T) {
	want := map[string]string{}
	for _, c := range Serve(2) {
		for name, text := range Files(c) {
			want[filepath.Join("serve", c.Name, name)] = text
		}
	}
	if *update {
		if err := os.RemoveAll("serve"); err != nil {
			t.Fatal(err)
		}
		for path, text := range want {
			if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
				t.Fatal(err)
			}
			if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
				t.Fatal(err)
			}
		}
	}
	have, err := filepath.Glob("serve/*/*")
	if err != nil {
		t.Fatal(err)
	}
	if all := slices.Sorted(maps.Keys(want)); !slices.Equal(all, have) {
		t.Errorf("committed files %v, want %v", have, all)
	}
	for path, text := range want {
		if got, err := os.ReadFile(path); err != nil || string(got) != text {
			t.Errorf("%s is not what the templates give (%v): run go test ./install/examples -update", path, err)
		}
	}
}

func TestExampleMeansWhatThePlanSays(t *testing.T) {
	for _, c := range Serve(2) {
		local := manifest.Read(filepath.Join("serve", c.Name), clustermesh.ClusterName(c.Name))
		if len(local.Problems) > 0 {
			t.Errorf("%s: problems %v", c.Name, local.Problems)
		}
		services := []string{"default/serve"}
		if c.Far {
			services = []string{"default/far", "default/serve"}
		}
		var exported []string
		for _, e := range local.Exports {
			exported = append(exported, e.Service.String())
			if len(e.Ports) != 2 || e.Ports[0].String() != "http:80/TCP" || e.Ports[1].String() != "udp:5353/UDP" {
				t.Errorf("%s %s: ports %v", c.Name, e.Service, e.Ports)
			}
		}
		if !slices.Equal(exported, services) {
			t.Errorf("%s exports %v, want %v", c.Name, exported, services)
		}
		if len(local.Nodes) != 2 || len(local.Endpoints) != 2*len(services) {
			t.Fatalf("%s: %d nodes, %d endpoints", c.Name, len(local.Nodes), len(local.Endpoints))
		}
		for i, n := range local.Nodes {
			if n.Addresses[0] != c.Underlay(i+1) || n.Prefixes[0] != c.PodCIDR(i+1) || n.Locality.Region != c.Region {
				t.Errorf("node %+v", n)
			}
		}
		for _, e := range local.Endpoints {
			n := slices.IndexFunc(local.Nodes, func(n clustermesh.Node) bool { return n.Name == e.Node })
			if n < 0 || !e.Ready || !local.Nodes[n].Prefixes[0].Contains(e.Addr) || e.Zone != local.Nodes[n].Locality.Zone {
				t.Errorf("endpoint %+v", e)
			}
		}
	}
}

func TestFilesOfOtherSizes(t *testing.T) {
	for _, nodes := range []int{1, 5, 254} {
		for _, c := range Serve(nodes) {
			dir := t.TempDir()
			for name, text := range Files(c) {
				if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o644); err != nil {
					t.Fatal(err)
				}
			}
			if local := manifest.Read(dir, ""); len(local.Nodes) != nodes || len(local.Problems) > 0 {
				t.Errorf("%s with %d nodes: %d nodes, problems %v", c.Name, nodes, len(local.Nodes), local.Problems)
			}
		}
	}
}
