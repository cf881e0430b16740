// Package version decides which versions of strait work with each other.
//
// Inputs are the versions of two builds, as their makers named them; outputs are what one is to the
// other. Pure. It must not know who runs which version.
package version

import (
	"strconv"
	"strings"

	"golang.org/x/mod/semver"
)

// Step is how one version follows another.
type Step int

// The steps.
const (
	// Unknown: one of the two is no semantic version, as that of a build between releases.
	Unknown Step = iota
	// Same: both are the same, or differ only in what a patch release may change.
	Same
	// Next and Back: one minor version on, or back. Both work together.
	Next
	Back
	// Far and FarBack: more than that. Nothing is promised.
	Far
	FarBack
)

// Between returns the step from one version to another. Versions are semantic versions with a v
// (semver.org). Two versions work with each other if they have the same major version and their
// minor versions differ by at most one: docs/versions.md has what that means.
func Between(from, to string) Step {
	switch {
	case from == to:
		return Same
	case !semver.IsValid(from) || !semver.IsValid(to):
		return Unknown
	}
	order := semver.Compare(semver.MajorMinor(to), semver.MajorMinor(from))
	near := semver.Major(from) == semver.Major(to) && distance(from, to) <= 1
	switch {
	case order == 0:
		return Same
	case order > 0 && near:
		return Next
	case order > 0:
		return Far
	case near:
		return Back
	}
	return FarBack
}

// Works reports whether two versions work with each other: it is so of the same and of neighbours,
// and not known of what is no semantic version.
func (s Step) Works() (works, known bool) {
	return s == Same || s == Next || s == Back, s != Unknown
}

// distance is by how much the minor versions differ.
func distance(a, b string) int {
	d := minor(a) - minor(b)
	return max(d, -d)
}

func minor(v string) int {
	_, text, _ := strings.Cut(semver.MajorMinor(v), ".")
	n, err := strconv.Atoi(text)
	if err != nil {
		return 1 << 30 // it is too large for any release
	}
	return n
}

// After returns the oldest minor version that follows a version, as vMAJOR.MINOR.
func After(v string) string {
	return semver.Major(v) + "." + strconv.Itoa(minor(v)+1)
}
