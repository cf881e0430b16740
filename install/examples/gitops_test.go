package examples

import (
	"encoding/base64"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"sigs.k8s.io/yaml"

	"strait.io/strait/clustermesh/authority"
	"strait.io/strait/install/chart"
)

func read(t *testing.T, into any, path ...string) {
	t.Helper()
	text, err := os.ReadFile(filepath.Join(path...))
	if err == nil && into != nil {
		err = yaml.UnmarshalStrict(text, into)
	}
	if err != nil {
		t.Fatal(err)
	}
}

// TestGitOps: the repository is whole. Each cluster has values that the chart takes, and lists what
// is there; the members are as leaders publish them, and can be pinned together.
func TestGitOps(t *testing.T) {
	var set struct {
		APIVersion, Kind, Namespace string
		ConfigMapGenerator          []struct {
			Name  string
			Files []string
		}
		GeneratorOptions struct{ DisableNameSuffixHash bool }
	}
	read(t, &set, "gitops", "clusterset", "kustomization.yaml")
	files, err := filepath.Glob("gitops/clusterset/members/*")
	if err != nil || len(set.ConfigMapGenerator) != 1 || set.Namespace != chart.Namespace || !set.GeneratorOptions.DisableNameSuffixHash {
		t.Fatalf("%+v, %v", set, err)
	}
	pins := authority.Pins{}
	var listed []string
	for _, file := range files {
		text, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		m, err := authority.ParseMember(text)
		if err != nil || len(m.Seeds) == 0 || string(m.Encode()) != string(text) {
			t.Errorf("%s: %v; want\n%s", file, err, m.Encode())
		}
		if want := string(m.Cluster) + ".yaml"; filepath.Base(file) != want {
			t.Errorf("%s is that of %s", file, want)
		}
		pins[m.Cluster] = m.Pin
		listed = append(listed, "members/"+filepath.Base(file))
		var cluster struct {
			APIVersion, Kind string
			Resources        []string
		}
		folder := filepath.Join("gitops", "clusters", string(m.Cluster))
		read(t, &cluster, folder, "kustomization.yaml")
		if !slices.Equal(cluster.Resources, []string{"strait.yaml", "secrets.yaml", "../../clusterset"}) {
			t.Errorf("%s lists %v", folder, cluster.Resources)
		}
		values := chart.Values{}
		read(t, &values, folder, "values.yaml")
		if _, err := chart.Render(chart.Options{Values: values}); err != nil || values["cluster"] != string(m.Cluster) {
			t.Errorf("%s: %v, %v", folder, values, err)
		}
	}
	if !slices.Equal(set.ConfigMapGenerator[0].Files, listed) || len(pins) < 2 || pins.Overlap() != nil {
		t.Errorf("listed %v, and there are %v: %v", set.ConfigMapGenerator[0].Files, listed, pins.Overlap())
	}
}

// word is what a key can be written as.
var word = regexp.MustCompile(`[A-Za-z0-9+/_-]{20,}={0,2}`)

// secrets returns what of a text could be a secret: objects of that kind, keys in PEM, and words
// that decode to a key. The keys below roots are public.
func secrets(text string) (found []string) {
	if regexp.MustCompile(`(?m)^ *(kind: *["']?Secret["']? *$|stringData:)`).MatchString(text) || strings.Contains(text, "PRIVATE KEY") {
		found = append(found, "a Secret, or a private key")
	}
	public := false
	for line := range strings.Lines(text) {
		if !strings.HasPrefix(line, "- ") {
			public = line == "roots:\n"
		}
		for _, w := range word.FindAllString(line, -1) {
			for _, e := range []*base64.Encoding{base64.StdEncoding, base64.RawStdEncoding, base64.URLEncoding, base64.RawURLEncoding} {
				if b, err := e.DecodeString(w); !public && err == nil && len(b) >= 32 {
					found = append(found, w)
				}
			}
		}
	}
	return found
}

// TestGitOpsHasNoSecret: nothing in the repository is secret, and what is would be found.
func TestGitOpsHasNoSecret(t *testing.T) {
	const key = "kpJ0Xn0dV1lQ8m3s5wYzq7c2b4h6u8f1r3t5v7x9z0A="
	for _, text := range []string{
		"kind: Secret\n", "  kind: \"Secret\"\n", "stringData:\n", "gossip.key: " + key + "\n", "roots:\n- a\nseeds:\n- " + key + "\n",
		"-----BEGIN PRIVATE KEY-----\n", "    value: " + strings.TrimRight(key, "=") + "\n",
	} {
		if len(secrets(text)) == 0 {
			t.Errorf("nothing secret is found in %q", text)
		}
	}
	n := 0
	err := filepath.WalkDir("gitops", func(path string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		n++
		text, err := os.ReadFile(path)
		for _, found := range secrets(string(text)) {
			t.Errorf("%s: %s", path, found)
		}
		return err
	})
	if err != nil || n < 9 {
		t.Errorf("%d files, %v", n, err)
	}
}
