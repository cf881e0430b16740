package kernels

import (
	"regexp"
	"strconv"
	"strings"
)

// Newest is the series of whatever is newest.
const Newest = "newest"

// pkg is one version of the package that stands for Debian's kernels for clouds.
type pkg struct{ version string }

// parseMadison reads `apt-cache madison`: package | version | source.
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

// newer compares the numbers of two versions, which is enough among Debian's versions of one package.
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

// releaseOf finds the kernel's release in what the meta package depends on.
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

// parts lists the packages that hold a release's image and modules, from what its linux-image package
// depends on: all in one, or, since 7.x, in several.
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

// repository is one source of packages that this machine is configured for.
type repository struct{ uri, label string }

// parseTargets reads `apt-get indextargets`: URI|origin|label.
func parseTargets(text string) (out []repository) {
	for line := range strings.Lines(text) {
		f := strings.Split(strings.TrimSpace(line), "|")
		if len(f) == 3 && f[1] == "Debian" {
			out = append(out, repository{strings.TrimSuffix(f[0], "/"), f[2]})
		}
	}
	return out
}

// Labels that Debian gives its archives.
const (
	labelMain     = "Debian"
	labelSecurity = "Debian-Security"
)

// suites are where each series comes from. A suite that the mirror no longer has is left out: its series
// then is an error that says so, if it was asked for.
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

// sources writes the list for apt. Where no archive for security updates is configured, its suites are left
// out: kernels are then a few weeks older.
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
