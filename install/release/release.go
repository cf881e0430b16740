// Package release says what a release of strait consists of: the names of its files, the chart and
// the manifests that refer to its image, what package managers and people read about it, and
// checksums.
//
// Inputs are programs, texts of the repository and what git knows of the source; outputs are the
// bytes of files, the same ones for the same input. It must not know how programs are built, files
// written, or registries spoken to: install/release/dist does that.
package release

import (
	"errors"
	"fmt"
	"path"
	"strings"
	"time"

	"golang.org/x/mod/semver"
)

// Release is what all files of a release have in common.
type Release struct {
	// Version is the tag: v0.1.0-rc.1.
	Version string
	// Revision is the commit; empty if it is not known.
	Revision string
	// Time is when the source was committed. Files are dated so.
	Time time.Time
	// Registry has the image and the chart: registry.example/team.
	Registry string
	// URL is the folder from which the files can be downloaded.
	URL string
}

// Check returns an error if there can be no such release.
func (r Release) Check() error {
	var errs []error
	if !semver.IsValid(r.Version) || semver.Canonical(r.Version) != r.Version {
		errs = append(errs, fmt.Errorf("VERSION: %q is not a version such as v0.1.0 or v0.1.0-rc.1: write make release VERSION=v0.1.0", r.Version))
	}
	if strings.HasSuffix(r.Revision, "-dirty") {
		errs = append(errs, fmt.Errorf("the source differs from the commit %s: commit or stash the changes that git status lists", strings.TrimSuffix(r.Revision, "-dirty")))
	}
	if r.Registry == "" || path.Clean(r.Registry) != r.Registry || strings.Contains(r.Registry, "://") {
		errs = append(errs, fmt.Errorf("REGISTRY: %q is not a registry with a path, such as registry.example/team", r.Registry))
	}
	if !strings.HasPrefix(r.URL, "http://") && !strings.HasPrefix(r.URL, "https://") {
		errs = append(errs, fmt.Errorf("RELEASE_URL: %q does not begin with https://: it is where the files can be downloaded", r.URL))
	}
	return errors.Join(errs...)
}

// Number is the version as Helm and package managers write it: 0.1.0-rc.1.
func (r Release) Number() string { return strings.TrimPrefix(r.Version, "v") }

// Preview reports whether it comes before the release of its number.
func (r Release) Preview() bool { return semver.Prerelease(r.Version) != "" }

// Image is the image's name, without a tag.
func (r Release) Image() string { return r.Registry + "/strait" }

// Charts is the chart's name, as Helm takes it.
func (r Release) Charts() string { return "oci://" + r.Registry + "/charts/strait" }

// EntryOfImage and EntryOfChart are their names in dist/oci, below the registry.
func (r Release) EntryOfImage() string { return "strait:" + r.Version }
func (r Release) EntryOfChart() string { return "charts/strait:" + r.Number() }

// PackedChart is the file that Helm would call the packed chart.
func (r Release) PackedChart() string { return "strait-" + r.Number() + ".tgz" }

// Annotations say what an image or a chart is, by the keys of image-spec.
func (r Release) Annotations(title, description string) map[string]string {
	out := map[string]string{
		"org.opencontainers.image.title":         title,
		"org.opencontainers.image.description":   description,
		"org.opencontainers.image.version":       r.Version,
		"org.opencontainers.image.created":       r.Time.UTC().Format(time.RFC3339),
		"org.opencontainers.image.url":           Home,
		"org.opencontainers.image.documentation": Home,
		"org.opencontainers.image.source":        Home,
		"org.opencontainers.image.vendor":        "strait",
		"org.opencontainers.image.licenses":      "Apache-2.0",
	}
	if r.Revision != "" {
		out["org.opencontainers.image.revision"] = r.Revision
	}
	return out
}

// Home is where people find strait, and Description what it is.
const (
	Home        = "https://strait.io"
	Description = "Joins Kubernetes clusters into one clusterset by eBPF socket load balancing, gossip and WireGuard."
)
