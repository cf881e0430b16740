package release

import (
	"archive/tar"
	"archive/zip"
	"bytes"
	"compress/gzip"
	"errors"
	"io"
	"strings"
	"testing"
	"time"
)

// TestPack: an archive has its files with their modes and one time, and is the same bytes each
// time.
func TestPack(t *testing.T) {
	when := time.Date(2026, 12, 1, 10, 20, 30, 0, time.FixedZone("", 3600))
	files := []File{{Name: "strait", Text: []byte("program"), Program: true}, {Name: "man/strait.1", Text: []byte("manual")}}
	for _, name := range []string{"a.tar.gz", "a.zip", "a.tgz"} {
		packed, err := Pack(name, files, when)
		if err != nil {
			t.Fatal(err)
		}
		if again, _ := Pack(name, files, when.UTC()); !bytes.Equal(packed, again) {
			t.Errorf("%s: another time zone makes another file", name)
		}
		got := unpackTar
		if strings.HasSuffix(name, ".zip") {
			got = unpackZip
		}
		want := "strait 755 2026-12-01T09:20:30Z program\nman/strait.1 644 2026-12-01T09:20:30Z manual\n"
		if is := got(t, packed); is != want {
			t.Errorf("%s holds\n%swant\n%s", name, is, want)
		}
	}
}

func line(t *testing.T, name string, mode int64, when time.Time, text io.Reader) string {
	t.Helper()
	b, err := io.ReadAll(text)
	if err != nil {
		t.Fatal(err)
	}
	return strings.Join([]string{name, map[int64]string{0o755: "755", 0o644: "644"}[mode], when.UTC().Format(time.RFC3339), string(b) + "\n"}, " ")
}

func unpackTar(t *testing.T, packed []byte) (out string) {
	t.Helper()
	plain, err := gzip.NewReader(bytes.NewReader(packed))
	if err != nil {
		t.Fatal(err)
	}
	for in := tar.NewReader(plain); ; {
		h, err := in.Next()
		if errors.Is(err, io.EOF) {
			return out
		}
		if err != nil {
			t.Fatal(err)
		}
		out += line(t, h.Name, h.Mode, h.ModTime, in)
	}
}

func unpackZip(t *testing.T, packed []byte) (out string) {
	t.Helper()
	in, err := zip.NewReader(bytes.NewReader(packed), int64(len(packed)))
	if err != nil {
		t.Fatal(err)
	}
	for _, f := range in.File {
		r, err := f.Open()
		if err != nil {
			t.Fatal(err)
		}
		out += line(t, f.Name, int64(f.Mode().Perm()), f.Modified, r)
	}
	return out
}

// TestChart: only the version and the image of a chart change; a chart in which they are not clear
// is refused.
func TestChart(t *testing.T) {
	given := []File{
		{Name: "Chart.yaml", Text: []byte("apiVersion: v2\nversion: 0.1.0 # of today\nappVersion: dev\nx: |\n  version: v1\n")},
		{Name: "templates/a.yaml", Text: []byte("version: 1\n")},
		{Name: "values.yaml", Text: []byte("image:\n  # Where.\n  repository: localhost/strait\n  tag: \"\"\n  digest: \"\"\n")},
	}
	got, err := sample().Chart(given, "sha256:12")
	if err != nil {
		t.Fatal(err)
	}
	want := []File{
		{Name: "strait/Chart.yaml", Text: []byte("apiVersion: v2\nversion: 1.2.3-rc.1\nappVersion: v1.2.3-rc.1\nx: |\n  version: v1\n")},
		{Name: "strait/templates/a.yaml", Text: []byte("version: 1\n")},
		{Name: "strait/values.yaml", Text: []byte("image:\n  # Where.\n  repository: registry.example/team/strait\n  tag: \"\"\n  digest: \"sha256:12\"\n")},
	}
	for i := range want {
		if got[i].Name != want[i].Name || !bytes.Equal(got[i].Text, want[i].Text) {
			t.Errorf("%s:\n%s\nwant %s:\n%s", got[i].Name, got[i].Text, want[i].Name, want[i].Text)
		}
	}
	if about, err := Metadata(got); err != nil || string(about) != `{"apiVersion":"v2","appVersion":"v1.2.3-rc.1","version":"1.2.3-rc.1","x":"version: v1\n"}` {
		t.Errorf("metadata %s, %v", about, err)
	}
	for _, files := range [][]File{given[:1], given[1:], {given[0], {Name: "values.yaml", Text: []byte("repository: a\nx:\n  repository: b\ndigest: c\n")}}} {
		if got, err := sample().Chart(files, ""); err == nil {
			t.Errorf("%v: %v, want an error", files, got)
		}
	}
}

func TestSums(t *testing.T) {
	got := string(Sums(map[string][]byte{"b": nil, "a/x": []byte("x\n")}))
	const want = "73cb3858a687a8494ca3323053016282f3dad39d42cf62ca4e79dda2aac7d9ac  a/x\n" +
		"e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855  b\n"
	if got != want {
		t.Errorf("got\n%swant\n%s", got, want)
	}
}
