package supply

import (
	"bytes"
	"crypto/sha256"
	"fmt"
	"io"
	"io/fs"
	"log"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-containerregistry/pkg/registry"

	"strait.io/strait/internal/testutil"
)

// version is that of the release that the tests make.
const version = "v0.1.0-rc.9"

// sizes are bounds of the programs' sizes in bytes. What calls methods by name, such as
// text/template, costs 27 MB, because the linker then keeps all methods of client-go. Client-go's
// clientset, and what imports it, such as its leader election, registers all kinds of Kubernetes,
// which costs straitd 12 MB.
var sizes = map[string]int64{"strait": 45e6, "straitd": 38e6}

// made is a release that make has written.
type made struct {
	source   string // the folder that it was made in
	registry string // of this test: HOST:PORT/team
	url      string // where dist is served
	args     string // make's
}

func (m made) file(name ...string) string {
	return filepath.Join(append([]string{m.source}, name...)...)
}

// dist reads a file of the release.
func (m made) dist(t *testing.T, name string) []byte {
	t.Helper()
	return read(t, m.file("dist", name))
}

// platforms are those of the tests: both processors of the image, and one of each other system.
const platforms = "linux/amd64 linux/arm64 darwin/arm64 windows/amd64"

// TestRelease makes a release in a checkout, and does with it what people do.
func TestRelease(t *testing.T) {
	needTool(t, "cyclonedx-gomod")
	m := newRelease(t)
	run(t, m.source, "umask 022; make release "+m.args)
	t.Run("sizes", m.sizes)
	t.Run("reproducible", m.reproducible)
	t.Run("programs", m.programs)
	t.Run("notes", m.notes)
	t.Run("verify", m.verify)
	t.Run("krew", m.krew)
	t.Run("push", m.push)
	t.Run("helm", m.helm)
}

// newRelease prepares a checkout with a tag and a commit after it, a key, a registry, and a server
// of the release's files.
func newRelease(t *testing.T) made {
	t.Helper()
	if _, err := exec.LookPath("minisign"); err != nil {
		testutil.Missing(t, "needs minisign: run `make setup` as root")
	}
	m := made{source: filepath.Join(t.TempDir(), "a")}
	copySource(t, m.source)
	commit := "git -c user.name=t -c user.email=t@t.invalid -c commit.gpgsign=false commit -q --allow-empty -m"
	run(t, m.source, "git init -q . && git add -A && "+commit+" all && git tag v0.1.0-rc.8 && "+commit+" 'cli: show more' && "+commit+" 'docs: say it'")
	run(t, m.source, "minisign -G -W -s ../release.key -p ../release.pub")
	images := httptest.NewServer(registry.New(registry.Logger(log.New(io.Discard, "", 0))))
	files := httptest.NewServer(http.FileServer(http.Dir(m.file("dist"))))
	t.Cleanup(images.Close)
	t.Cleanup(files.Close)
	m.registry, m.url = strings.TrimPrefix(images.URL, "http://")+"/team", files.URL
	m.args = fmt.Sprintf("VERSION=%s REGISTRY=%s RELEASE_URL=%s RELEASE_KEY=%s RELEASE_PLATFORMS='%s'",
		version, m.registry, m.url, m.file("..", "release.key"), platforms)
	return m
}

func (m made) sizes(t *testing.T) {
	for program, most := range sizes {
		for _, arch := range []string{"amd64", "arm64"} {
			if size := int64(len(read(t, m.file("bin/release/linux-"+arch, program)))); size > most {
				t.Errorf("%s has %d bytes; want at most %d. Does a new import call methods by name, as text/template does?", program, size, most)
			}
		}
	}
}

// reproducible: who builds the same source gets the same release, in whatever folder, with git or
// from the tarball of git archive, whatever the umask is. Without git, only the list of commits is
// missing. To save time, the second build links the programs of this machine alone, and takes those
// of the others from the first.
func (m made) reproducible(t *testing.T) {
	host := "linux/" + runtime.GOARCH
	there := made{source: filepath.Join(t.TempDir(), "a/longer/path")}
	run(t, m.source, "mkdir -p "+there.source+" && git archive HEAD | (umask 077; tar -x -C "+there.source+")")
	run(t, there.source, "umask 077; make release-programs "+m.args+" RELEASE_PLATFORMS="+host)
	run(t, there.source, "umask 077; for p in "+m.file("bin/release/*-*")+"; do [ -e bin/release/${p##*/} ] || cp -r $p bin/release/; done; make -o release-programs release "+m.args)
	compared := 0
	err := fs.WalkDir(os.DirFS(m.file("dist")), ".", func(name string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		compared++
		a, b := m.dist(t, name), there.dist(t, name)
		if strings.HasPrefix(name, "SHA256SUMS") || name == "RELEASE_NOTES.md" {
			a, b = withoutCommits(a), withoutCommits(b)
		}
		if name != "SHA256SUMS.minisig" && !bytes.Equal(a, b) {
			t.Errorf("%s: two builds of one source give %x and %x", name, sha256.Sum256(a), sha256.Sum256(b))
		}
		for _, dir := range []string{m.source, there.source} {
			if bytes.Contains(a, []byte(dir)) {
				t.Errorf("%s holds the name of the folder that it was built in", name)
			}
		}
		return nil
	})
	if err != nil || compared < 20 {
		t.Errorf("%d files were compared, %v", compared, err)
	}
	for _, program := range []string{"strait", "straitd"} {
		file := "bin/release/linux-" + runtime.GOARCH + "/" + program
		if a := read(t, m.file(file)); !bytes.Equal(a, read(t, there.file(file))) || bytes.Contains(a, []byte(m.source)) {
			t.Errorf("%s: two builds of one source differ, or it holds the name of the folder that it was built in", file)
		}
	}
}

// withoutCommits leaves out of the notes the list of commits, and of the checksums that of the
// notes.
func withoutCommits(text []byte) []byte {
	text, _, _ = bytes.Cut(text, []byte("\n## Commits since"))
	text, _, _ = bytes.Cut(text, []byte("\nThis was built without git"))
	lines := slices.DeleteFunc(bytes.Split(text, []byte("\n")), func(l []byte) bool { return bytes.HasSuffix(l, []byte("RELEASE_NOTES.md")) })
	return bytes.TrimSpace(bytes.Join(lines, []byte("\n")))
}

// programs: what people unpack runs, and says which version of which commit it is.
func (m made) programs(t *testing.T) {
	dir := t.TempDir()
	revision := strings.TrimSpace(run(t, m.source, "git rev-parse HEAD"))
	archive := func(program, platform string) string { return m.file("dist", program+"_"+version+"_"+platform) }
	run(t, dir, "tar -xzf "+archive("strait", "linux_"+runtime.GOARCH+".tar.gz")+"; mkdir d; tar -xzf "+archive("straitd", "linux_"+runtime.GOARCH+".tar.gz")+" -C d")
	if out := run(t, dir, "./strait version --socket /nowhere; ./d/straitd version"); !strings.Contains(out, version+" ("+revision+", go") || !strings.Contains(out, "straitd "+version+"\n") {
		t.Errorf("the programs say\n%s", out)
	}
	for name, want := range map[string]string{
		"LICENSE": "Apache", "README.md": "# strait", "completions/strait.bash": "__start_strait", "completions/_strait": "#compdef strait",
		"completions/strait.fish": "complete -c strait", "man/strait-explain.1": ".TH \"STRAIT-EXPLAIN\" \"1\"", "man/strait.1": "exit codes",
	} {
		if text := read(t, filepath.Join(dir, name)); !strings.Contains(strings.ToLower(string(text)), strings.ToLower(want)) {
			t.Errorf("%s has no %q", name, want)
		}
	}
	run(t, dir, "bash -n completions/strait.bash")
	for platform, want := range map[string]string{"darwin_arm64.tar.gz": "strait", "windows_amd64.zip": "strait.exe"} {
		list := run(t, dir, "case "+platform+" in *.zip) python3 -m zipfile -l "+archive("strait", platform)+" ;; *) tar -tzf "+archive("strait", platform)+" ;; esac")
		if !slices.ContainsFunc(strings.Split(list, "\n"), func(l string) bool { return strings.HasPrefix(l+" ", want+" ") }) {
			t.Errorf("%s has no %s:\n%s", platform, want, list)
		}
	}
}

// notes: what changed for people, where the release is, and the commits since the last one.
func (m made) notes(t *testing.T) {
	notes := string(m.dist(t, "RELEASE_NOTES.md"))
	for _, want := range []string{
		"# strait " + version, "### Added", "## Commits since v0.1.0-rc.8\n\n### cli\n\n- cli: show more\n\n### docs\n\n- docs: say it\n",
		m.registry + "/strait:" + version + "@sha256:", "oci://" + m.registry + "/charts/strait --version " + version[1:],
	} {
		if !strings.Contains(notes, want) {
			t.Errorf("the notes have no %q:\n%s", want, notes)
		}
	}
}

// TestReleaseRefused: there is no release of a version, a state of the source, or a key that cannot
// be one.
func TestReleaseRefused(t *testing.T) {
	for args, want := range map[string]string{
		"VERSION=1.2.3 REVISION=a":                              `VERSION: "1.2.3" is not a version`,
		"VERSION=v9.9.9 REVISION=a":                             "CHANGELOG.md has no section ## [9.9.9]",
		"VERSION=v0.1.0-rc.1 REVISION=a-dirty":                  "the source differs from the commit a: commit or stash",
		"VERSION=v0.1.0-rc.1 REVISION=a RELEASE_KEY=/nowhere":   "RELEASE_KEY: open /nowhere",
		"VERSION=v0.1.0-rc.1 REVISION=a RELEASE_KEY=go.mod":     "RELEASE_KEY: read go.mod",
		"VERSION=v0.1.0-rc.1 REVISION=a REGISTRY=":              `REGISTRY: "" is not a registry`,
		"VERSION=v0.1.0-rc.1 REVISION=a RELEASE_PLATFORMS=bsd":  `RELEASE_PLATFORMS: "bsd"`,
		"VERSION=v0.1.0-rc.1 REVISION=a RELEASE_URL=strait.io/": "RELEASE_URL",
	} {
		out, err := try(t, top, "make release "+args)
		if err == nil || !strings.Contains(out, "make release: ") || !strings.Contains(out, want) {
			t.Errorf("%s: %v, want %q\n%s", args, err, want, out)
		}
	}
}
