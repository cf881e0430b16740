package plan

import (
	"fmt"
	"regexp"
	"slices"
	"strings"

	"golang.org/x/mod/semver"
)

// Latest is the folder that has the same pages as the latest version, so that links to them stay
// valid.
const Latest = "latest"

// Versions is the file versions.json, which the pages read to offer other versions.
type Versions struct {
	Latest   string   `json:"latest"`
	Versions []string `json:"versions"` // the newest first
}

var version = regexp.MustCompile(`^[A-Za-z0-9][A-Za-z0-9._+-]*$`)

// CheckVersion says what is wrong with a version's name, which is also the name of a folder.
func CheckVersion(name string) error {
	if name == Latest || !version.MatchString(name) {
		return fmt.Errorf("version %q: use letters, digits, dots and dashes, as in v1.2.3, and not %q", name, Latest)
	}
	return nil
}

// Order sorts versions and finds the latest: the newest release, or without a release the newest
// pre-release. Builds that have no version number come last, and the latest is the one just built
// if there is nothing else.
func Order(names []string, built string) Versions {
	out := slices.Clone(names)
	slices.SortFunc(out, func(a, b string) int {
		if c := semver.Compare(b, a); c != 0 { // an invalid version is less than a valid one
			return c
		}
		return strings.Compare(a, b)
	})
	latest := built
	if len(out) > 0 && semver.IsValid(out[0]) {
		latest = out[0]
	}
	if i := slices.IndexFunc(out, release); i >= 0 {
		latest = out[i]
	}
	return Versions{Latest: latest, Versions: out}
}

func release(name string) bool { return semver.IsValid(name) && semver.Prerelease(name) == "" }
