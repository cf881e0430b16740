package release

import (
	"crypto/sha256"
	"fmt"
	"strings"
)

// Packed is the archive of strait for a platform.
type Packed struct {
	Platform Platform
	Archive  []byte
}

// Archives are those of all platforms, in their order.
type Archives []Packed

// Krew returns the manifest by which krew installs strait as a plugin of kubectl.
func (r Release) Krew(archives Archives) []byte {
	var out strings.Builder
	fmt.Fprintf(&out, `apiVersion: krew.googlecontainertools.github.com/v1alpha2
kind: Plugin
metadata:
  name: strait
spec:
  version: %s
  homepage: %s
  shortDescription: Joins clusters into one clusterset
  description: |
    strait joins Kubernetes clusters into one clusterset by eBPF socket load balancing, gossip and
    WireGuard. kubectl strait installs it in clusters and joins them, shows what its daemons know, and
    says why traffic goes where it goes.
  caveats: |
    Begin with: kubectl strait install --help
  platforms:
`, r.Version, Home)
	for _, a := range archives {
		fmt.Fprintf(&out, `  - selector:
      matchLabels:
        os: %s
        arch: %s
    uri: %s/%s
    sha256: %x
    bin: %s
    files:
    - from: %[6]s
      to: .
    - from: LICENSE
      to: .
`, a.Platform.OS, a.Platform.Arch, r.URL, r.Archive("strait", a.Platform), sha256.Sum256(a.Archive), a.Platform.Executable("strait"))
	}
	return []byte(out.String())
}

// Homebrew returns the formula by which Homebrew installs strait.
func (r Release) Homebrew(archives Archives) []byte {
	var out strings.Builder
	fmt.Fprintf(&out, `class Strait < Formula
  desc "Joins Kubernetes clusters into one clusterset"
  homepage "%s"
  version "%s"
  license "Apache-2.0"

`, Home, r.Number())
	for _, system := range []struct{ os, name string }{{"darwin", "macos"}, {"linux", "linux"}} {
		fmt.Fprintf(&out, "  on_%s do\n", system.name)
		for _, a := range archives {
			if a.Platform.OS == system.os {
				fmt.Fprintf(&out, "    on_%s do\n      url \"%s/%s\"\n      sha256 \"%x\"\n    end\n",
					map[string]string{"amd64": "intel", "arm64": "arm"}[a.Platform.Arch], r.URL, r.Archive("strait", a.Platform), sha256.Sum256(a.Archive))
			}
		}
		out.WriteString("  end\n\n")
	}
	out.WriteString(`  def install
    bin.install "strait"
    man1.install Dir["man/*.1"]
    bash_completion.install "completions/strait.bash" => "strait"
    zsh_completion.install "completions/_strait"
    fish_completion.install "completions/strait.fish"
  end

  test do
    assert_match version.to_s, shell_output("#{bin}/strait --version")
  end
end
`)
	return []byte(out.String())
}
