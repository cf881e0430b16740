package kernels

import (
	"regexp"
	"strconv"
	"strings"
)

// Newest is the series name that selects the newest kernel of all.
const Newest = "newest"

// pkg is one version of Debian's meta package for cloud kernels.
type pkg struct{ version string }

// parseMadison parses the output of `apt-cache madison`: package | version | source.
func parseMadison(text string) (out []pkg) {
	for line := range strings.Lines(text) {
		fields := strings.Split(line, "|")
		if len(fields) == 3 && strings.HasSuffix(strings.TrimSpace(fields[2]), "Packages") {
			out = append(out, pkg{version: strings.TrimSpace(fields[1])})
		}
	}
	return out
}

// pick returns the newest package of a series.
func pick(series string, from []pkg) (best pkg, ok bool) {
	for _, p := range from {
		if series != Newest && !strings.HasPrefix(p.version, series+".") {
			continue
		}
		if !ok || newer(p.version, best.version) {
			best, ok = p, true
		}
	}
	return best, ok
}

var number = regexp.MustCompile(`\d+`)

// newer reports whether version a is newer than b. It compares only the numbers in them, which is
// enough for Debian's versions of one package.
func newer(a, b string) bool {
	as, bs := number.FindAllString(a, -1), number.FindAllString(b, -1)
	for i := range min(len(as), len(bs)) {
		x, errX := strconv.Atoi(as[i])
		y, errY := strconv.Atoi(bs[i])
		if errX != nil || errY != nil || x != y {
			return x > y
		}
	}
	return len(as) > len(bs)
}

var imageName = regexp.MustCompile(`linux-image-(\d[^ ,]*)`)

// releaseOf finds the kernel's release in the dependencies of the meta package.
func releaseOf(show string) (string, bool) {
	for line := range strings.Lines(show) {
		if depends, ok := strings.CutPrefix(line, "Depends:"); ok {
			if m := imageName.FindStringSubmatch(depends); m != nil {
				return strings.TrimSpace(m[1]), true
			}
		}
	}
	return "", false
}

// parts lists the packages that hold a release's image and modules. It is one package or, since
// 7.x, several that the linux-image package depends on.
func parts(release, show string) []string {
	var out []string
	for _, name := range []string{"linux-binary-" + release, "linux-modules-" + release, "linux-base-" + release} {
		if strings.Contains(show, " "+name+" ") || strings.Contains(show, " "+name+",") {
			out = append(out, name)
		}
	}
	if out == nil {
		return []string{"linux-image-" + release}
	}
	return out
}

// repository is one of the package sources that this machine's apt is configured with.
type repository struct{ uri, label string }

// parseTargets parses the output of `apt-get indextargets`: URI|origin|label.
func parseTargets(text string) (out []repository) {
	for line := range strings.Lines(text) {
		f := strings.Split(strings.TrimSpace(line), "|")
		if len(f) == 3 && f[1] == "Debian" {
			out = append(out, repository{strings.TrimSuffix(f[0], "/"), f[2]})
		}
	}
	return out
}

// The labels of Debian's archives.
const (
	labelMain     = "Debian"
	labelSecurity = "Debian-Security"
)

// suites are where the series come from. A suite that the mirror no longer has is ignored; Get
// returns an error if its series is requested.
var suites = []struct{ label, name string }{
	{labelMain, "bullseye"},
	{labelSecurity, "bullseye-security"},
	{labelMain, "bookworm"},
	{labelSecurity, "bookworm-security"},
	{labelMain, "trixie"},
	{labelSecurity, "trixie-security"},
	{labelMain, "trixie-backports"},
	{labelMain, "sid"},
}

// sources returns apt's sources.list. If no archive with security updates is configured, its suites
// are omitted, and kernels are a few weeks older.
func sources(repos []repository, keyring string) string {
	var b strings.Builder
	for _, s := range suites {
		for _, r := range repos {
			if r.label == s.label {
				b.WriteString("deb [arch=amd64 signed-by=" + keyring + "] " + r.uri + " " + s.name + " main\n")
				break
			}
		}
	}
	return b.String()
}
