package fleet

import (
	"bytes"
	"fmt"
	"strconv"
	"strings"
	"testing"

	"strait.io/strait/install/chart"
)

func TestSplitImage(t *testing.T) {
	for ref, want := range map[string]string{
		"strait":                          "strait  ",
		"reg.example:5000/a/strait":       "reg.example:5000/a/strait  ",
		"reg.example:5000/strait:v1":      "reg.example:5000/strait v1 ",
		"localhost/strait:dev@sha256:00f": "localhost/strait dev sha256:00f",
	} {
		m := splitImage(ref)
		if got := fmt.Sprint(m["repository"], " ", m["tag"], " ", m["digest"]); got != want {
			t.Errorf("%s: %q, want %q", ref, got, want)
		}
	}
}

// TestDaemonImage: install prints the image that the chart asks for: by its digest if one is given.
func TestDaemonImage(t *testing.T) {
	digest := "sha256:" + strings.Repeat("0a", 32)
	for ref, want := range map[string]string{
		"reg.example:5000/strait":              "reg.example:5000/strait:v9",
		"reg.example:5000/strait:v1":           "reg.example:5000/strait:v1",
		"reg.example:5000/strait@" + digest:    "reg.example:5000/strait@" + digest,
		"reg.example:5000/strait:v1@" + digest: "reg.example:5000/strait@" + digest,
	} {
		docs, err := chart.Render(chart.Options{Version: "v9", Values: chart.Values{"image": splitImage(ref)}})
		if err != nil {
			t.Fatal(err)
		}
		if got := daemonImage(docs); got != want {
			t.Errorf("%s: %q, want %q", ref, got, want)
		}
	}
}

func TestImagePin(t *testing.T) {
	image := func(kv ...string) chart.Values {
		m := map[string]any{}
		for i := 0; i < len(kv); i += 2 {
			m[kv[i]] = kv[i+1]
		}
		return chart.Values{"image": m}
	}
	for _, tc := range []struct {
		name          string
		before, given chart.Values
		want          string
	}{
		{"nothing was set", chart.Values{}, chart.Values{}, ""},
		{"a repository alone", image("repository", "reg/strait", "tag", "", "digest", ""), chart.Values{}, ""},
		{"a tag", image("repository", "reg/strait", "tag", "v1", "digest", ""), chart.Values{"log": "x"}, "v1"},
		{"a digest", image("tag", "v1", "digest", "sha256:0"), chart.Values{}, "sha256:0"},
		{"a tag, and now another", image("tag", "v1"), image("tag", "v2"), ""},
	} {
		if got := imagePin(tc.before, tc.given); got != tc.want {
			t.Errorf("%s: %q, want %q", tc.name, got, tc.want)
		}
	}
}

// TestClusterFlag: whatever DNS label a cluster's id is, it is text, and more than one of --set or --values says.
func TestClusterFlag(t *testing.T) {
	for _, id := range []string{"us-east", "1", "007", "true", "null", "1e3"} {
		f := installFlags{cluster: id, image: "strait:2", set: []string{"cluster=other,log.level=debug"}}
		values, err := f.read()
		if err != nil || values["cluster"] != any(id) {
			t.Errorf("--cluster %s: %v %v", id, values, err)
		}
		if err := clusterID(t.Context(), nil, values); err != nil { // without an API server: the id is there
			t.Errorf("--cluster %s: %v", id, err)
		}
		docs, err := chart.Render(chart.Options{Values: values})
		if err != nil || !strings.Contains(string(bytes.Join(docs, nil)), fmt.Sprintf("\n    cluster: %s\n", map[bool]string{true: id, false: strconv.Quote(id)}[id == "us-east"])) {
			t.Errorf("--cluster %s: it is not in the daemon's configuration: %v", id, err)
		}
	}
}

// The id of a cluster stays: to others, another id would be another cluster.
func TestSameID(t *testing.T) {
	for _, tt := range []struct {
		was, now chart.Values
		refused  bool
	}{
		{nil, chart.Values{"cluster": "a"}, false},
		{chart.Values{}, chart.Values{"cluster": "a"}, false},
		{chart.Values{"cluster": "a"}, chart.Values{"cluster": "a"}, false},
		{chart.Values{"cluster": "a"}, chart.Values{}, false},
		{chart.Values{"cluster": "a"}, chart.Values{"cluster": "b"}, true},
	} {
		err := sameID("c1", tt.was, tt.now)
		if refused := err != nil; refused != tt.refused {
			t.Errorf("%v after %v: %v", tt.now, tt.was, err)
		}
		if err != nil && (!strings.Contains(err.Error(), "--cluster a") || !strings.Contains(err.Error(), "strait uninstall --context c1")) {
			t.Errorf("does not say what to do: %v", err)
		}
	}
}
